"""Shared by all readers of one process: one reader of events per queue, recent answers, and the streams."""
