"""Objects for users, made from the server's answers. No I/O: the asynchronous and the blocking client share these."""
