"""The verdicts of the benchmark: targets with a bound and an aim, figures in which a peer leads, missing peers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.metrics import COMPARED, METRICS, OURS, PYTHON, RATES, Samples, leads
from bench.peers import pypi
from bench.peers.groupmq_py.single import outside_us
from bench.peers.library import Library
from bench.report import document, panels, svg, text
from bench.run import SCENARIOS, measure
from bench.scenarios.trickle import NOTED
from bench.server import private_server
from bench.settings import QUICK, Settings
from bench.targets import TARGETS, Target, judge

LIBRARIES = [
    Library(OURS, "groupmq", "1", ()),
    Library("bullmq", "BullMQ", "6", (), kind="node"),
    Library("arq", "arq", "0.28", (), kind="python"),
]


def measured(**medians: tuple[float, float]) -> Samples:
    """Samples with our figure and that of BullMQ for each metric."""
    samples = Samples()
    for metric, (ours, peer) in medians.items():
        samples.add(metric, OURS, ours)
        samples.add(metric, "bullmq", peer)
    return samples


def test_every_target_is_about_figures_that_are_measured() -> None:
    for target in TARGETS:
        assert target.numerator[0] in METRICS
        assert target.denominator[0] in METRICS
        assert [target.at_least, target.at_most, target.below].count(None) == 2, target


def test_an_aim_is_never_easier_than_what_must_hold() -> None:
    for target in TARGETS:
        if target.aim is not None:
            assert target.holds(target.aim), target


@pytest.mark.parametrize(
    ("bounds", "ours", "word"),
    [
        ({"at_least": 2, "aim": 4}, 10, "MISSED"),
        ({"at_least": 2, "aim": 4}, 30, "pass"),
        ({"at_least": 2, "aim": 4}, 40, "aim"),
        ({"at_most": 2, "aim": 1}, 30, "MISSED"),
        ({"at_most": 2, "aim": 1}, 20, "pass"),
        ({"at_most": 2, "aim": 1}, 10, "aim"),
        ({"below": 1}, 10, "MISSED"),
        ({"below": 1}, 9, "pass"),
    ],
)
def test_a_verdict_says_missed_pass_or_aim(bounds: dict[str, float], ours: float, word: str) -> None:
    target = Target("t", ("process_1", OURS), ("process_1", "bullmq"), **bounds)
    (verdict,) = judge(measured(process_1=(ours, 10)), [target])
    assert verdict.word == word
    assert word in text.verdicts([verdict])


def test_a_target_without_both_figures_is_not_judged() -> None:
    samples = Samples()
    samples.add("process_100", OURS, 1.0)
    assert judge(samples) == []


def test_where_a_peer_is_ahead_is_said_whichever_way_is_better() -> None:
    samples = measured(process_1=(10, 20), process_10=(20, 10), memory=(30, 10), server_add=(9, 1))
    found = leads(samples, [OURS, "bullmq"])
    assert [(lead.metric.key, lead.library, lead.times) for lead in found] == [
        ("process_1", "bullmq", 2),
        ("memory", "bullmq", 3),
    ]
    said = text.leads(found, LIBRARIES)
    assert "process, concurrency 1: BullMQ 2.00x" in said
    assert "memory per waiting job: BullMQ 3.00x" in said
    assert "no peer is ahead" in text.leads([], LIBRARIES)


def test_results_hold_every_sample_and_what_was_left_out() -> None:
    samples = measured(process_1=(10, 20))
    samples.raw["trickle_200_start_ms", OURS].append([1.5, 2.25])
    samples.left_out["arq"] = "arq: process failed\nTraceback\nImportError: no arq"
    verdicts = judge(samples)
    built = document.build(samples, verdicts, leads(samples, ["bullmq"]), LIBRARIES, QUICK, {})
    assert built["left_out"] == {"arq": samples.left_out["arq"]}
    assert built["peers_ahead"] == [{"metric": "process_1", "library": "bullmq", "times": 2}]
    raw = json.loads(document.raw(samples, {"server": "none"}))
    assert raw["samples"] == {f"trickle_200_start_ms {OURS}": [[1.5, 2.25]]}
    assert "arq: arq: process failed: ImportError: no arq" in text.left_out(samples, LIBRARIES)
    assert "<svg" in svg.render(panels.all_of(samples, LIBRARIES, QUICK), verdicts, "")


def test_python_libraries_have_a_table_of_their_own() -> None:
    samples = measured(process_1=(10, 20))
    samples.add("python_process_1", OURS, 30)
    samples.add("python_process_1", "arq", 10)
    node, python = text.tables(samples, LIBRARIES, Settings())
    assert "arq" not in node
    assert "arq 0.28" in python
    assert "(3.00x)" in python
    assert "BullMQ" not in python


def test_figures_are_named_once_and_scenarios_too() -> None:
    keys = [metric.key for metric in (*COMPARED, *PYTHON)]
    assert len(keys) == len(set(keys))
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert set(NOTED) == set(RATES)


def test_what_a_call_costs_beside_its_commands_counts_scripts_and_functions() -> None:
    rows = {
        "cmdstat_evalsha": {"calls": 1, "usec": 50.0},
        "cmdstat_fcall_ro": {"calls": 1, "usec": 30.0},
        "cmdstat_hmget": {"calls": 9, "usec": 20.0},
        "cmdstat_info": {"calls": 1, "usec": 999.0},
    }
    assert outside_us(rows) == 30.0


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("not a folder")
    said: list[str] = []
    libraries, failed = pypi.install(folder, said.append)
    assert libraries == []
    assert set(failed) == {peer.title for peer in pypi.PEERS}
    assert all(reason.startswith("not installed: could not make") for reason in failed.values())
    assert any("without arq" in line for line in said)


def test_an_environment_that_is_there_is_used_as_it_is(tmp_path: Path) -> None:
    for peer in pypi.PEERS:
        (tmp_path / peer.key).mkdir()
        needs = " ".join([*peer.needs, *pypi.FAST])
        (tmp_path / peer.key / "installed.json").write_text(json.dumps({"needs": needs, "version": "7"}))
    libraries, failed = pypi.install(tmp_path, lambda line: pytest.fail(line))
    assert failed == {}
    assert {library.version for library in libraries} == {"7"}
    scripts = {library.command[-1].removeprefix("bench.peers.python.") for library in libraries}
    folder = Path(pypi.__file__).parent / "python"
    assert scripts == {path.stem for path in folder.glob("*_peer.py")}


def test_a_peer_that_does_not_run_is_named_and_the_rest_goes_on() -> None:
    broken = Library("arq", "arq", "1", (sys.executable, "-c", "raise SystemExit('broken')"), kind="python")
    also = Library("saq", "SAQ", "1", (sys.executable, "-c", "raise SystemExit('too')"), kind="python")
    scenarios = [scenario for scenario in SCENARIOS if scenario.name == "python"]
    with private_server("valkey") as server:
        samples = measure(server, QUICK, [broken, also], scenarios, lambda line: None)
    assert {key: reason.splitlines()[-1] for key, reason in samples.left_out.items()} == {"arq": "broken", "saq": "too"}
    assert samples.values == {}
