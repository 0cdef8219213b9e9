"""Connections to other libraries. Each module needs an extra of its own and uses the public API only."""
