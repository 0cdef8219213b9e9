"""A handler to try the deployment with; yours takes its place."""

import asyncio
from typing import Any


async def handle(job: Any) -> None:
    print("processing", job.id, job.data, flush=True)
    await asyncio.sleep(0.1)
