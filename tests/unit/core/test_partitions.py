"""Partitions: the one that a group or an id belongs to, and its slot in a cluster."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from groupmq.client.answers.repeats import repeat_id, repeat_place
from groupmq.client.partitions.spreading import place_for, placed
from groupmq.core.drafts import draft
from groupmq.core.ids import new_id
from groupmq.core.limits import Throttle
from groupmq.core.partitions import PLACES, Part, carried, carrying, home_of, place_of, slot_of_tag, tag_of
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.keys import Keys

OPTIONS = QueueOptions("q")


def test_the_place_of_a_group_never_changes() -> None:
    """Places are stored: with another hash, the jobs of a group would be looked for in the wrong partition."""
    assert [place_of(group) for group in ("user:42", "", "ä", "g")] == [14040273, 13551594, 15155495, 3359908]


@given(st.integers(0, PLACES - 1))
def test_ids_carry_their_place(place: int) -> None:
    job_id = carrying(new_id(), place)
    assert carried(job_id) == home_of(job_id) == place


@given(st.text(min_size=1))
def test_an_id_of_a_user_carries_none_unless_it_has_that_form(job_id: str) -> None:
    assert carried(job_id) is None
    assert home_of(job_id) == place_of(job_id)


def test_occurrences_of_a_repeat_are_found_by_their_id() -> None:
    for group in ("user:42", None):
        rid = repeat_id(group, "every 5 s")
        assert carried(f"{rid}:1700000000000") == repeat_place(group, "every 5 s")


@pytest.mark.parametrize("partitions", [2, 3, 16, 64, 100, 1024])
def test_partitions_lie_evenly_over_the_slots(partitions: int) -> None:
    slots = [slot_of_tag(tag_of("orders", Part(i, partitions))) for i in range(partitions)]
    assert slots == sorted(slots)
    for shards in (n for n in (1, 2, 3, 6, 12) if partitions >= 8 * n):
        on_each = Counter(slot * shards // 16384 for slot in slots)
        assert max(on_each.values()) <= 1.1 * partitions / shards + 1


def test_groups_lie_evenly_over_the_shards() -> None:
    slots = [slot_of_tag(tag_of("orders", Part(i, 64))) for i in range(64)]
    on_each = Counter(slots[place_of(f"user:{i}") % 64] * 3 // 16384 for i in range(10_000))
    assert max(on_each.values()) / (10_000 / 3) < 1.1


@given(st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_the_keys_of_a_partition_share_a_slot_and_belong_to_no_other_queue(name: str) -> None:
    keys = Keys("p", name, Part(3, 4))
    assert key_slot(keys.meta.encode()) == key_slot(keys.group("}{").encode()) == slot_of_tag(tag_of(name, Part(3, 4)))
    inside = keys.meta.removeprefix("p:{").partition("}")[0]
    assert "{" in inside  # no name of a queue contains this character


def test_where_a_job_goes() -> None:
    grouped = draft(OPTIONS, 1, group_id="user:42")
    assert place_for(grouped) == place_of("user:42")
    assert place_for(draft(OPTIONS, 1, group_id="user:42", job_id="mine")) == place_of("user:42")
    assert place_for(draft(OPTIONS, 1, job_id="mine")) == place_of("mine")
    assert place_for(draft(OPTIONS, 1, dedupe=Throttle("k", 5))) == place_of("k")
    assert len({place_for(draft(OPTIONS, 1)) % 8 for _ in range(200)}) == 8
    assert carried(placed(grouped, place_of("user:42")).id) == place_of("user:42")
    assert placed(named := draft(OPTIONS, 1, job_id="mine"), 5) is named
