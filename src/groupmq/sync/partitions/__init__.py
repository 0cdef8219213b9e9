"""The blocking twin of groupmq.client.partitions."""
