"""Queues that are spread over several hash tags."""
