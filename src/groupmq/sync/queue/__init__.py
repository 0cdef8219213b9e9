"""The blocking queue. Generated from `client/queue/` but for `queue.py`."""
