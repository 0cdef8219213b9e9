"""The dashboard: see and manage the queues of a server in a browser. An ASGI app that mounts under any path.

>>> from groupmq.dashboard import create_app
>>> app.mount("/queues", create_app(["orders"], auth=my_check))
"""

from groupmq.dashboard.app import create_app
from groupmq.dashboard.security.auth import allow_anyone, hash_password

__all__ = ["allow_anyone", "create_app", "hash_password"]
