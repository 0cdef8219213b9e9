"""GET of a stream: the notifications for all tabs of a queue, or of the list of queues."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from groupmq.dashboard.endpoints.page import HttpEndpoint, read_ids, view_of
from groupmq.dashboard.errors import Refused
from groupmq.dashboard.live.recent import LONGEST_POSITION
from groupmq.dashboard.live.stream import Streams
from groupmq.dashboard.visit import Services, Visit


def stream_endpoint(services: Services, streams: Streams) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        if streams.full:
            raise Refused(503, "Too many streams", "Too many pages are open; this one does not update automatically.")
        visit = Visit(request, services)
        queue = read_ids(request).get("queue")
        if queue is None:
            subscription = services.shared.overview.subscribe()
            answer = streams.answer(subscription, services.shared.overview.unsubscribe, missed=False)
            return _until_logged_out(answer, visit)
        view = await view_of(visit, queue)
        await view.row()  # 503 now, rather than a stream without events
        reader = services.shared.reader(view.queue)
        last = request.headers.get("last-event-id") or request.query_params.get("since", "")
        events = request.query_params.get("events") == "1"
        subscription, missed = await reader.subscribe(last[:LONGEST_POSITION], events=events)
        return _until_logged_out(streams.answer(subscription, reader.unsubscribe, missed=missed), visit)

    return endpoint


def _until_logged_out(answer: StreamingResponse, visit: Visit) -> StreamingResponse:
    """End the stream with its session: nothing is sent after a logout."""
    auth, request, body = visit.services.auth, visit.request, answer.body_iterator

    async def allowed() -> AsyncIterator[Any]:
        async with aclosing(cast(AsyncGenerator[Any], body)) as parts:
            async for part in parts:
                if auth.is_over(request):
                    return
                yield part

    answer.body_iterator = allowed()
    return answer
