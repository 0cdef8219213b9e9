"""`groupmq queue`: commands about a queue as a whole."""
