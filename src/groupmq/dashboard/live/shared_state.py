"""Everything that the readers of one dashboard share. Made with the app, started by the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupmq import ConnectionLost, GroupMQError, Queue, QueueNotFound, ServerRefused
from groupmq.dashboard.actions.audit import Audit
from groupmq.dashboard.actions.tasks import Tasks
from groupmq.dashboard.catalogue import Catalogue
from groupmq.dashboard.documents.attempts import AllowedAttempts
from groupmq.dashboard.documents.queue_row import QueueRow, queue_row, unreadable_row
from groupmq.dashboard.live.overview import Overview
from groupmq.dashboard.live.reader import Reader
from groupmq.dashboard.live.shared import SharedAnswers
from groupmq.dashboard.options import Options

if TYPE_CHECKING:
    from groupmq import ServerInfo


class SharedState:
    """Shared by all requests of the process. A mounted app gets no lifespan, so nothing here needs to be started."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.catalogue = Catalogue(options)
        self.answers = SharedAnswers()
        self.tasks = Tasks(self)
        self.audit = Audit(options.audit)
        self.overview = Overview(self)
        self._server = SharedAnswers(good_for=10.0)
        self._readers: dict[str, Reader] = {}
        self.attempts: dict[str, AllowedAttempts] = {}
        """How often jobs may run, by queue, as of the last time that its row was made."""

    async def queue_row(self, queue: Queue, *, fresh: bool = False) -> QueueRow:
        """The queue in one row, for the top of a page, the list and the stream."""

        async def make() -> QueueRow:
            server = await self.server_info(queue)
            names = self.catalogue
            row = await queue_row(
                queue,
                server,
                display_name=names.display_name(queue.name),
                description=names.description(queue.name),
            )
            self.attempts[queue.name] = row.attempts
            return row

        row: QueueRow = await self.answers.get(("row", queue.name), make, fresh=fresh)
        return row

    async def named_row(self, name: str, *, fresh: bool = False) -> QueueRow | None:
        """The row of a queue by its name; None if it is gone. The row of a queue that cannot be read says why."""
        try:
            return await self.queue_row(await self.catalogue.open(name), fresh=fresh)
        except QueueNotFound:
            await self.catalogue.forget(name)
            return None
        except (ConnectionLost, ServerRefused):
            raise
        except GroupMQError as error:
            display_name, description = self.catalogue.display_name(name), self.catalogue.description(name)
            return unreadable_row(name, error, display_name=display_name, description=description)

    async def server_info(self, queue: Queue | None = None) -> ServerInfo | None:
        """Facts about the server; None if it does not give them (managed services forbid INFO)."""
        if queue is None:
            names = await self.catalogue.names()
            if not names:
                return None
            try:
                queue = await self.catalogue.open(names[0])
            except QueueNotFound:
                return None
        info: ServerInfo | None = await self._server.get("server", lambda: _server_info(queue))
        return info

    def reader(self, queue: Queue) -> Reader:
        """The one reader of this queue's events in this process; it reads while a tab listens."""
        if queue.name not in self._readers:
            self._readers[queue.name] = Reader(queue, self)
        return self._readers[queue.name]

    def last_event_id(self, queue: str) -> str | None:
        """The newest event of a queue that this process has read, if a tab listens to it."""
        reader = self._readers.get(queue)
        return None if reader is None else reader.last_id

    def spent(self, queue: str | None, seconds: float) -> None:
        """Count the time that a read after a notification took."""
        reader = self._readers.get(queue or "")
        if reader is not None:
            reader.notify_rate.spent(seconds)

    def acted(self) -> None:
        """Forget the shared answers, because something has changed."""
        self.answers.forget()

    async def close(self) -> None:
        """End readers and tasks and close the queues that were opened here."""
        readers, self._readers = list(self._readers.values()), {}
        for reader in readers:
            await reader.close()
        await self.overview.close()
        await self.tasks.close()
        await self.catalogue.close()


async def _server_info(queue: Any) -> ServerInfo | None:
    try:
        info: ServerInfo = await queue.get_server_info()
        return info
    except (ConnectionLost, QueueNotFound):
        raise
    except GroupMQError:
        return None
