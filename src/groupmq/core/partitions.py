"""Partitions of a queue: which one a group or an id belongs to, and the hash tag of each. Pure; no I/O.

A *place* is a number of 24 bits. The place of a group is the hash of its id. Partition = place mod number of
partitions, so the place outlives a change of that number. Ids that groupmq makes end with the place of their job, as
four characters.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

MOST_PARTITIONS = 1024
"""More would make every fan-out slow, and hardly any cluster has more primaries than this."""
PLACES = 2**24
SLOTS = 16384
"""Slots of a cluster."""
_MADE = re.compile(r"(?:[A-Za-z0-9_-]{12}|repeat-[0-9a-f]{18})\.([A-Za-z0-9_-]{4})(?::-?[0-9]+)?")
"""Ids that carry a place: those of jobs, of repeats, and of the occurrences of repeats."""


class Part(NamedTuple):
    """One partition: its number, from 0, and how many there are."""

    number: int
    of: int


def place_of(text: str) -> int:
    """The place of a group, or of an id. It is stored, so it must be the same in every process and every release."""
    return int.from_bytes(blake2b(text.encode(), digest_size=3).digest(), "big")


def carrying(made: str, place: int) -> str:
    """An id that carries the place of its job."""
    return f"{made}.{urlsafe_b64encode(place.to_bytes(3, 'big')).decode()}"


def carried(job_id: str) -> int | None:
    """The place that an id carries; None for an id that a user gave."""
    found = _MADE.fullmatch(job_id)
    return None if found is None else int.from_bytes(urlsafe_b64decode(found[1]), "big")


def home_of(job_id: str) -> int:
    """The place where the search for a job begins: the one its id carries, else the hash of the id."""
    place = carried(job_id)
    return place_of(job_id) if place is None else place


def slot_of_tag(tag: str) -> int:
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


@lru_cache(maxsize=8 * MOST_PARTITIONS)
def tag_of(name: str, part: Part) -> str:
    """The hash tag of a partition. Names have no braces, so no other queue has the same tag.

    The slots of a cluster are divided evenly: partition i of P gets a slot in the i-th of P equal ranges, by trying
    numbers until one fits. Left to chance, one of three primaries gets a fifth more than its share of 64 partitions.
    """
    number, of = part
    first, end = -(-number * SLOTS // of), -(-(number + 1) * SLOTS // of)
    salt = 0
    while not first <= slot_of_tag(tag := f"{name}{{{number}/{of}.{salt}") < end:
        salt += 1
    return tag
