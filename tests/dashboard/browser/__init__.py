"""The dashboard in a real browser: Debian's chromium, driven by Playwright, on a real server with a real worker."""
