"""Additions to asyncio, threads and forks: tasks, objects per event loop, listeners, pauses. No words of queues."""
