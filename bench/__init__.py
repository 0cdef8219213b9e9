"""The benchmark: groupmq beside BullMQ, GroupMQ (Node) and bee-queue on one private server."""
