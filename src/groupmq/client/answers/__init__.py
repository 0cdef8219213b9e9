"""What is made of the server's answers. No I/O: the asynchronous and the blocking client share these."""
