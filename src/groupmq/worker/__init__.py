"""The worker: fetches jobs, runs handlers, reports outcomes, keeps leases alive."""

from groupmq.worker.worker import CurrentJob, Worker, WorkerMetrics

__all__ = ["CurrentJob", "Worker", "WorkerMetrics"]
