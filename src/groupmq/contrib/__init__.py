"""Integrations with other libraries. Each module has its own extra and uses the public API only."""
