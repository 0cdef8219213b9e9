"""What all readers of one process share: one reader of events per queue, answers that are a moment old, streams."""
