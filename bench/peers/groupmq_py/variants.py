"""The cost of a setting of the queue: the same work with and without it, in small alternating slices."""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict

import redis

from bench.peers.groupmq_py import bulk
from bench.rounds import rotated
from bench.server import Server
from bench.servertime import Meter, watch_calls

PAUSE_S = 0.1
"""Seconds between adding and processing, until all ordering windows are over, so that no waiting is measured."""


async def run(args: argparse.Namespace) -> dict[str, list[float]]:
    """For each of --variants and each of --slices, jobs added and processed per second, and the server's time per job.

    Each variant has its own queue on the same server. The first slice of each is a warm-up and is not timed; it shows
    which commands its scripts call.
    """
    variants = args.variants.split(",")
    figures: dict[str, list[float]] = defaultdict(list)
    with redis.Redis(port=args.port) as client:
        server = Server(args.port, client)
        meters = {}
        for variant in variants:
            with watch_calls(server) as share:
                await _add(args, variant)
                await _process(args, variant)
            meters[variant] = Meter(server, share)
        for number in range(args.slices):
            for variant in rotated(variants, number):
                with meters[variant].measure() as adding:
                    figures[f"add_{variant}"].append(await _add(args, variant))
                with meters[variant].measure() as processing:
                    figures[variant].append(await _process(args, variant))
                figures[f"server_add_{variant}"].append(adding[0].command_us / args.jobs)
                figures[f"server_{variant}"].append((adding[0] + processing[0]).command_us / args.jobs)
    return dict(figures)


async def _add(args: argparse.Namespace, variant: str) -> float:
    """Add --jobs jobs. Returns jobs per second."""
    done = await bulk.enqueue(_for(args, variant))
    await asyncio.sleep(PAUSE_S)
    return done["jobs"] / done["seconds"]


async def _process(args: argparse.Namespace, variant: str) -> float:
    """Process --jobs jobs. Returns jobs per second."""
    done = await bulk.process(_for(args, variant))
    return done["jobs"] / done["seconds"]


def _for(args: argparse.Namespace, variant: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), "variant": variant, "queue": variant})
