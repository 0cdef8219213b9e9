"""How commands answer: tables, JSON, log lines, progress, pages over HTTP."""
