"""The blocking queue. Generated from `client/queue/` but for `runtime.py`."""
