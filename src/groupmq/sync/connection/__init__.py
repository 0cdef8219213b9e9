"""How the blocking queue reaches its server."""
