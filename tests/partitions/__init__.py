"""Queues with partitions."""
