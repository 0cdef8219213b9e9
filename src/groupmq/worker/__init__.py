"""The worker: fetches jobs, runs handlers, reports outcomes, keeps leases alive."""

from groupmq.worker.health import CurrentJob, Health
from groupmq.worker.telemetry import WorkerMetrics
from groupmq.worker.worker import Worker
from groupmq.worker.workers import Workers

__all__ = ["CurrentJob", "Health", "Worker", "WorkerMetrics", "Workers"]
