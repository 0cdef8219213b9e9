"""Keeping leases alive: the heartbeat and its thread, and the watch on the event loop."""
