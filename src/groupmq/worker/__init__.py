"""The worker: fetches jobs, runs handlers, reports outcomes, keeps leases alive."""

from groupmq.worker.desk import WorkerMetrics
from groupmq.worker.worker import CurrentJob, Worker

__all__ = ["CurrentJob", "Worker", "WorkerMetrics"]
