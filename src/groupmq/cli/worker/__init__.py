"""`groupmq worker`: start a handler in this process, or in several under supervision."""
