"""Queues that are spread over several hash tags: which partition has a job, and how the partitions act as one queue."""
