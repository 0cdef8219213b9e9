"""How a queue reaches its server. The only package that imports redis."""
