"""The life of a worker: starting, hooks, the end of a burst, closing, and what is left when it has died."""
