"""The duties of a blocking queue. Generated from `client/duties/`."""
