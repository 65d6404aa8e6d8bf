"""Every scorecard that a test of the jobs makes is checked: its metrics have words."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest

from runner.scorecard import Scorecard


def unworded(card: Scorecard) -> list[str]:
    """What is wrong with the words of a scorecard's metrics, one line each."""
    wrong = []
    for model, metrics in card.models.items():
        wrong += [
            f"{model} {metric.path}: no name, meaning or direction is declared"
            for metric in metrics
            if not metric.name or not metric.meaning
        ]
        names = Counter(metric.name for metric in metrics)
        wrong += [
            f"{model} {metric.path}: another metric is called {metric.name!r} too"
            for metric in metrics
            if names[metric.name] > 1
        ]
    return wrong


@pytest.fixture(autouse=True)
def _scorecards_have_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the scorecards of the five jobs, under whatever settings a test has."""
    plain = Scorecard.__init__

    def checked(card: Scorecard, *args: Any, **fields: Any) -> None:
        plain(card, *args, **fields)
        frame = sys._getframe(1)
        # `replace` makes them too
        while frame.f_globals["__name__"] == "dataclasses" and frame.f_back:
            frame = frame.f_back
        # a test's own scorecards are made up, and a report adds findings to them
        module = frame.f_globals["__name__"]
        if module.startswith("jobs.") and not module.startswith("jobs.kit.report."):
            assert not unworded(card)

    monkeypatch.setattr(Scorecard, "__init__", checked)
