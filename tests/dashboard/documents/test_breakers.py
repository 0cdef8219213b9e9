"""Groups whose breaker is open: on the page of the queue, among the lanes, on the page of the group."""

from __future__ import annotations

from groupmq import Breaker
from tests.dashboard.busy import Busy
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def test_the_lanes_show_groups_with_an_open_breaker_alone(busy: Busy, site: Site) -> None:
    page = await site.json("lanes", queue="orders")
    assert [one["value"] for one in page["states"]] == [""], "there is nothing to choose"
    await busy.queue.reconfigure(breaker=Breaker(1, 3600))
    job = await busy.queue.add(busy.data("fail"), group_id="shop:7", max_attempts=1)
    await busy.queue.add(busy.data("complete"), group_id="shop:7")

    async def rests() -> bool:
        return (await busy.queue.get_group("shop:7")).breaker_since is not None

    await eventually(rests, "its breaker is open")
    page = await site.json("lanes", queue="orders", state="breaker")
    (lane,) = page["lanes"]
    assert (lane["group_id"], lane["failures"], lane["held"]["reason"]) == ("shop:7", 1, "breaker")
    assert lane["breaker_since"] < lane["breaker_until"]
    assert (page["queue"]["breakers_open"], page["total"]) == (1, 1)
    assert [(one["value"], one["count"]) for one in page["states"]][1:] == [("breaker", 1)]
    (told,) = [one for one in page["queue"]["warnings"] if "breaker" in one["text"]]
    assert (told["link"], told["state"]) == ("lanes", "breaker")
    group = await site.json("group", queue="orders", group="shop:7")
    assert (group["lane"]["failures"], group["lane"]["breaker_since"]) == (1, lane["breaker_since"])
    assert job.id in {one["id"] for one in group["failed"]}
