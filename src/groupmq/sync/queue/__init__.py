"""The blocking queue. Generated from `client/queue/`, except for `runtime.py`."""
