"""What a reader can do. Each action first says what it will do to how many jobs and to the order, then does it."""
