"""Metrics for Prometheus. Needs the extra `prometheus`.

>>> prometheus_client.REGISTRY.register(QueueCollector(queue))
"""

from groupmq.metrics.collector import QueueCollector
from groupmq.metrics.workers import WorkerCollector, WorkerSample

__all__ = ["QueueCollector", "WorkerCollector", "WorkerSample"]
