"""Events of a queue as a blocking iterator. A background thread receives them: `sync/listening.py`."""
