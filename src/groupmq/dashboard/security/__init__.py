"""Security: authentication, permissions, read-only, forged requests, headers, limits."""
