"""The pages that are looked at in the browser."""

from __future__ import annotations

PAGES = {
    "queues": ("/", "Queues"),
    "queue": ("/queues/orders", "orders"),
    "day": ("/queues/orders?range=day", "orders"),
    "lanes": ("/queues/orders/lanes", "Lanes"),
    "deepest": ("/queues/orders/lanes?sort=deepest&match=user", "Lanes"),
    "waiting": ("/queues/orders/jobs?state=waiting", "Jobs"),
    "active": ("/queues/orders/jobs?state=active", "Jobs"),
    "delayed": ("/queues/orders/jobs?state=delayed", "Jobs"),
    "failed": ("/queues/orders/jobs?state=failed", "Jobs"),
    "completed": ("/queues/orders/jobs?state=completed", "Jobs"),
    "search": ("/queues/orders/jobs?state=failed&q=error:ValueError", "Jobs"),
    "nothing": ("/queues/orders/jobs?state=failed&q=error:Nothing", "Jobs"),
    "group": ("/queues/orders/groups/user:42", "user:42"),
    "paused": ("/queues/orders/groups/user:9", "user:9"),
    "unknown-group": ("/queues/orders/groups/nobody", "nobody"),
    "waits": ("/queues/orders/jobs/waits-0", "waits-0"),
    "runs": ("/queues/orders/jobs/runs-1", "runs-1"),
    "bad": ("/queues/orders/jobs/bad-1", "bad-1"),
    "good": ("/queues/orders/jobs/good-1", "good-1"),
    "later": ("/queues/orders/jobs/later-1", "later-1"),
    "failures": ("/queues/orders/failures", "Failures"),
    "repeats": ("/queues/orders/repeats", "Repeats"),
    "workers": ("/queues/orders/workers", "Workers"),
    "events": ("/queues/orders/events", "Events"),
    "settings": ("/queues/orders/settings", "Settings and health"),
    "tasks": ("/queues/orders/tasks", "Bulk actions"),
    "plan": ("/queues/orders/actions/edit?job=waits-0", "Edit the data"),
    "missing": ("/queues/orders/jobs/never-was", ""),
    "nowhere": ("/there/is/no/such/page", ""),
}
"""By a name: the path, and a part of its heading."""
