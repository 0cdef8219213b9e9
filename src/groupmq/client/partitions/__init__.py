"""Queues that are spread over several hash tags: where a job is, and the whole queue from its partitions."""
