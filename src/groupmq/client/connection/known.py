"""What a process knows of the stored settings of a queue, and of each of its partitions. No I/O."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError
from groupmq.core.partitions import Part
from groupmq.core.queue_options import AS_STORED, HANDLING, QueueArguments, QueueOptions
from groupmq.core.settings import QueueSettings, StoredQueue, adopted, changed, differences, given_too, not_known


class Known:
    """What a process knows of the stored settings of one queue, for all connections that it uses the queue with."""

    def __init__(self, given: QueueOptions) -> None:
        self.given = given
        """The options that the process was started with."""
        self._learned = given, StoredQueue(None)
        """Options and stored settings are replaced together: with options of one revision and the number of another, a
        change would go unnoticed."""
        self._warned: dict[bytes, object] = {}
        self.opened = False
        self.creates = True
        """Whether opening a queue that does not exist creates it."""
        self.accepts_stored = False
        self._logger: Logger = given.logger or logging.getLogger("groupmq.queue")

    @property
    def options(self) -> QueueOptions:
        """The options as stored with the queue, once they are known. Another object after each change."""
        return self._learned[0]

    @property
    def revision(self) -> bytes:
        """The revision of the known settings; empty = none are known, and calls are not checked."""
        return self._learned[1].revision

    @property
    def stored(self) -> StoredQueue:
        """The settings as last read, from which `options` were made."""
        return self._learned[1]

    def learn(self, stored: StoredQueue) -> None:
        """Use the queue as it is stored from now on. Raises ConfigurationError if this process was given other values.

        A running process uses changed settings, whatever it was given: it must not stop in the middle of its work. The
        change is logged, and the next start is refused.
        """
        if self.opened and stored.revision == self.revision:
            return
        settings = QueueSettings.of(stored)
        self._check_partitions(settings)
        found = self._differences(settings)
        if found and not self.opened:
            raise _disagrees(self.given.name, found)
        if found and self.revision:
            self._warn_of_change(stored.revision, found)
        self._learned = self._adopted(stored, settings), stored
        self.opened = True

    def _check_partitions(self, settings: QueueSettings) -> None:
        """Check the one setting that a running process cannot adopt: it would put jobs where no process looks."""
        mine = self.options.partitions
        if self.options.is_stored and mine != settings.partitions:
            raise ConfigurationError(
                f"queue {self.given.name!r} exists with other settings: partitions is {settings.partitions} there and "
                f"{mine} here. `groupmq queue repartition` changes it; restart processes after that"
            )

    def has_repartitioned(self, to: int) -> None:
        """Record that this process has changed the number of partitions. The stored settings must be read again."""
        self.given = replace(self.given, partitions=to)
        self._learned = replace(self.options, partitions=to), StoredQueue(None)

    def _warn_of_change(self, revision: bytes, found: list[str]) -> None:
        """Log a change once, whether the heartbeat's thread or the event loop notices it first."""
        mine = object()
        if self._warned.setdefault(revision, mine) is mine:
            self._logger.warning(
                "queue %s: the stored settings have changed, and this process uses them from now on: %s. "
                "Its next start with the options that it was given will be refused",
                self.given.name,
                "; ".join(found),
            )

    def _differences(self, settings: QueueSettings) -> list[str]:
        return [] if self.accepts_stored else [*differences(self.given, settings), *not_known(settings)]

    def change(self, stored: StoredQueue, changes: QueueArguments) -> QueueOptions:
        """The options to store in place of the stored ones. Raises as `learn` does if others than `changes` differ."""
        if stored.schema is None:
            return changed(QueueSettings.from_stored(self.options.described()), self.given.name, changes)
        settings = QueueSettings.of(stored)
        others = replace(self.given, given=self.given.given - changes.keys())
        if not self.opened and not self.accepts_stored and (found := differences(others, settings)):
            raise _disagrees(self.given.name, found)
        return changed(settings, self.given.name, changes)

    def has_changed(self, stored: StoredQueue, changes: QueueArguments) -> None:
        """Record that this process has changed the stored settings: from now on they count as given to it."""
        self.given = given_too(self.given, QueueSettings.of(stored), changes.keys())
        self.learn(stored)

    def _adopted(self, stored: StoredQueue, settings: QueueSettings) -> QueueOptions:
        options, mine = adopted(self.given, settings), self.given
        if not self.accepts_stored:
            return options
        # A tool handles jobs by the options that it was given. If it was given none and nothing is stored, it must
        # neither fail jobs early nor remove what workers keep.
        own = given_too(options, QueueSettings.from_stored(mine.described()), mine.given.intersection(HANDLING))
        if stored.handling:
            return own
        careful: Any = {name: value for name, value in AS_STORED.items() if name not in mine.given}
        return replace(own, **careful)


class KnownPart:
    """What a process knows of one partition: whether it exists. Its settings are those of the queue."""

    creates = True
    """A partition is made when it is needed, unless the queue itself refuses."""

    def __init__(self, whole: Known, part: Part) -> None:
        self.whole = whole
        self.part = part
        self.opened = False

    @property
    def options(self) -> QueueOptions:
        return self.whole.options

    @property
    def revision(self) -> bytes:
        return self.whole.revision


def _disagrees(name: str, found: list[str]) -> ConfigurationError:
    others = [one for one in found if not one.startswith("partitions is ")]
    changes = ["reconfigure() changes what is stored"] if others else []
    changes += ["repartition() changes the number of partitions"] if len(others) < len(found) else []
    return ConfigurationError(
        f"queue {name!r} exists with other settings: {'; '.join(found)}. "
        f"Leave out the options that should stay as stored; {', and '.join(changes)}"
    )
