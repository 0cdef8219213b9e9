"""How handlers are called: in the event loop, and `def` handlers in threads, or in processes, which can be killed."""

from groupmq.worker.runners.child import HandlerError
from groupmq.worker.runners.choosing import Preparing, checked_handler, invoker, preparing_of
from groupmq.worker.runners.processes import WorkerProcessDied

__all__ = ["HandlerError", "Preparing", "WorkerProcessDied", "checked_handler", "invoker", "preparing_of"]
