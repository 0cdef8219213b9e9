"""What a setting of the queue costs: the same work with and without it, in small slices that take turns."""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict

import redis

from bench.peers.groupmq_py import bulk
from bench.rounds import rotated
from bench.server import Server
from bench.servertime import Meter, watch_calls

SETTLE_S = 0.1
"""Between adding and processing: ordering windows have run out, so that what is measured is work and no waiting."""


async def run(args: argparse.Namespace) -> dict[str, list[float]]:
    """For each of --variants and each of --slices, jobs processed per second and the server's time per job.

    Each variant has a queue of its own on the same server. The first slice of each warms up and is not timed; it
    tells which commands its scripts call.
    """
    variants = args.variants.split(",")
    figures: dict[str, list[float]] = defaultdict(list)
    with redis.Redis(port=args.port) as client:
        server = Server(args.port, client)
        meters = {}
        for variant in variants:
            with watch_calls(server) as share:
                await _slice(args, variant)
            meters[variant] = Meter(server, share)
        for number in range(args.slices):
            for variant in rotated(variants, number):
                with meters[variant].measure() as cost:
                    rate = await _slice(args, variant)
                figures[variant].append(rate)
                figures[f"server_{variant}"].append(cost[0].command_us / args.jobs)
    return dict(figures)


async def _slice(args: argparse.Namespace, variant: str) -> float:
    """Add --jobs jobs and work them off; jobs per second of the latter."""
    mine = argparse.Namespace(**{**vars(args), "variant": variant, "queue": variant})
    await bulk.enqueue(mine)
    await asyncio.sleep(SETTLE_S)
    done = await bulk.process(mine)
    return done["jobs"] / done["seconds"]
