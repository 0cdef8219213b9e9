"""Without chromium these tests are skipped with a message that lists what is not tested; in CI they fail."""

from __future__ import annotations

import pytest

from tests.dashboard.browser import chromium


def test_without_chromium_the_tests_say_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPMQ_CHROMIUM", "/nowhere/chromium")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="left out: every test of the dashboard in a browser"):
        chromium.require()


def test_in_ci_a_missing_chromium_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPMQ_CHROMIUM", "/nowhere/chromium")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="CI must run every test"):
        chromium.require()
