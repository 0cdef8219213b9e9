"""Which duties a worker has beside its jobs, and when it runs them."""
