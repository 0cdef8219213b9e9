"""Who may see and do what: authentication, permissions, read-only, forged requests, headers, limits."""
