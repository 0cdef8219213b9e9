"""A sample handler for trying the deployment. Replace it with yours."""

import asyncio
from typing import Any


async def handle(job: Any) -> None:
    print("processing", job.id, job.data, flush=True)
    await asyncio.sleep(0.1)
