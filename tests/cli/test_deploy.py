"""The files in deploy/ and contrib/ match the command: options, signals, metrics."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from groupmq.cli.duties import recovery, scheduler
from groupmq.cli.exporter import exporter
from groupmq.cli.tree import cli
from groupmq.cli.worker.command import worker
from groupmq.metrics import QueueCollector, WorkerCollector
from groupmq.sync import Queue
from tests.cli.programs import ROOT, in_folder
from tests.support.workers import one_kind

DEPLOY, CONTRIB = ROOT / "deploy", ROOT / "contrib"
COMMANDS: dict[str, click.Command] = {
    "worker": worker,
    "scheduler": scheduler,
    "recovery": recovery,
    "exporter": exporter,
}


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def accepted(words: list[str]) -> None:
    """Check that the command accepts these words, without running it."""
    command = COMMANDS[words[0]]
    command.make_context(words[0], words[1:], parent=click.Context(cli))


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in documents(path):
            if document["kind"] == "Deployment":
                pod = document["spec"]["template"]["spec"]
                yield pod, pod["containers"][0]


def option(words: list[str], name: str) -> str:
    return next(word for word in words if word.startswith(f"--{name}=")).partition("=")[2]


def test_the_dockerfile_says_what_it_must() -> None:
    """Without a container engine, only this and the lint of `make check` can be checked."""
    path = DEPLOY / "Dockerfile"
    lines = path.read_text().splitlines()
    words = [line.split(" ", 1) for line in lines if re.match(r"[A-Z]+ ", line)]
    found = dict(words)
    assert json.loads(found["ENTRYPOINT"]) == ["groupmq"]  # the other form starts a shell, which passes no signals on
    assert found["STOPSIGNAL"] == "SIGTERM"
    assert found["USER"].isdigit()
    assert "GROUPMQ_BIND=0.0.0.0" in path.read_text(), "the ports must be reachable from outside of the container"
    known = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "STOPSIGNAL", "USER", "WORKDIR"}
    assert found.keys() <= known
    for _, rest in (line for line in words if line[0] == "COPY"):
        if not rest.startswith("--from"):
            assert all((ROOT / name).exists() for name in rest.split()[:-1])


def test_compose_starts_commands_that_exist() -> None:
    (compose,) = documents(DEPLOY / "compose.yaml")
    services = compose["services"]
    ours = {name: service for name, service in services.items() if name != "valkey"}
    assert set(ours) == set(COMMANDS)
    for service in ours.values():
        accepted(service["command"])
    drain = services["worker"]["command"][services["worker"]["command"].index("--drain-timeout") + 1]
    assert float(services["worker"]["stop_grace_period"].rstrip("s")) >= float(drain) + 5
    assert "noeviction" in services["valkey"]["command"]
    module = services["worker"]["command"][1].partition(":")[0]
    assert (DEPLOY / "app" / f"{module}.py").exists()


def test_kubernetes_starts_commands_that_exist() -> None:
    seen = set()
    for pod, container in containers():
        accepted(container["args"])
        seen.add(container["args"][0])
        port = "port" if container["args"][0] == "exporter" else "health-port"
        assert container["ports"][0]["containerPort"] == int(option(container["args"], port))
        assert option(container["args"], "bind") == "0.0.0.0", "probes come from outside of the container"
        assert pod["securityContext"]["runAsNonRoot"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["path"] in ("/livez", "/readyz")
    assert seen == set(COMMANDS)


def test_the_unit_is_one() -> None:
    path = DEPLOY / "groupmq-worker@.service"
    text = path.read_text()
    drain = re.search(r"--drain-timeout (\d+)", text)
    stop = re.search(r"TimeoutStopSec=(\d+)", text)
    assert drain
    assert stop
    assert int(stop[1]) >= int(drain[1]) + 5
    assert "KillMode=mixed" in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "groupmq-worker@.service").read_text()
    unit = tmp_path / "groupmq-worker@orders.service"
    unit.write_text(text.replace("/opt/groupmq/bin/groupmq", "/bin/true"))
    answer = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert unit.name not in answer.stderr


@one_kind
def test_the_pre_stop_hook_drains(tmp_path: Path, url: str) -> None:
    """The hook lasts as long as the drain. The SIGTERM that follows at the end of its time gives running jobs back."""
    (hook,) = [container["lifecycle"]["preStop"] for _, container in containers() if "lifecycle" in container]
    for impatient in (False, True):
        folder = tmp_path / str(impatient)
        folder.mkdir()
        with Queue(f"orders-{impatient}", url) as queue:
            for programs in in_folder(folder, url):
                job = queue.add("wait")
                program = programs.worker(queue=queue.name)
                program.until(partial(programs.diary, "start"), "the job runs")
                words = [word.replace("TERM 1", f"TERM {program.pid}") for word in hook["exec"]["command"]]
                words = [word.replace("-0 1", f"-0 {program.pid}") for word in words]
                with subprocess.Popen(words) as hooked:
                    program.says("stopping")
                    assert hooked.poll() is None
                    if impatient:
                        program.signal(signal.SIGTERM)
                    else:
                        programs.open_gate()
                    assert program.ends() == 0
                    assert hooked.wait(20) == 0
                assert queue.require_job(job.id).state == ("waiting" if impatient else "completed")


def known_metrics() -> set[str]:
    with Queue("orders", "redis://127.0.0.1:1") as queue:
        families = [*QueueCollector(queue).describe(), *WorkerCollector(list).describe()]
    known = set()
    for family in families:
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        known |= {family.name + ending for ending in endings}
    return known


def test_dashboard_and_alerts_use_metrics_that_exist() -> None:
    board = json.loads((CONTRIB / "grafana" / "groupmq.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    queries += [variable["query"] for variable in board["templating"]["list"]]
    queries += re.findall(r"(?m)^ *expr: ((?:>-\n(?: {10}.*\n)+)|.*)", (CONTRIB / "prometheus/alerts.yaml").read_text())
    used = {name for query in queries for name in re.findall(r"groupmq_[a-z_]+", query)}
    assert used - known_metrics() == set()
    never = {"groupmq_worker_completed_total", "groupmq_worker_retried_total", "groupmq_worker_failed_total"}
    assert len(used) > len(known_metrics() - never) / 2


def test_alerts_are_rules() -> None:
    (rules,) = documents(CONTRIB / "prometheus" / "alerts.yaml")
    for rule in rules["groups"][0]["rules"]:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
