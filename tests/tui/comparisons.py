"""Comparisons out of thin air, and a child that answers with them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tui.sources.command import CommandFailed, Record


def metric(**changed: Any) -> dict[str, Any]:
    """A metric as the command prints it."""
    return {
        "a": 0.5,
        "b": 0.75,
        "difference": 0.25,
        "lo": 0.125,
        "hi": 0.375,
        "b_used": 2000,
        "flagged": False,
        "verdict": "better",
        "few": False,
        "test": {"name": "sign flips by paper", "p": 0.001, "p_holm": 0.002},
        "beside": None,
        "n": 612_004,
        "clusters": 120,
        "only_a": 3,
        "only_b": 98_110,
        "undefined": 0,
        "standing": {"wins": 31_204, "losses": 460, "ties": 561_340},
        "cluster": "paper",
        "definition": "mean@1(of a test)",
        **changed,
    }


UNSURE = metric(lo=None, hi=None, verdict="undecided", n=1, test=None)
APART = metric(a=None, b=None, difference=None, lo=None, hi=None, n=0, standing=None)
FEW = metric(few=True, clusters=4, verdict="too few")


def pair(
    model: str = "m-large", other: str | None = None, **changed: Any
) -> dict[str, Any]:
    """Two models with their metrics."""
    return {
        "a": {"run": "r1", "model": model, "seq": 12},
        "b": {"run": "r2", "model": other or model, "seq": 14},
        "metrics": {"avg_score": metric(), "few": FEW, "unsure": UNSURE},
        "not_compared": {},
        "only_a": [],
        "only_b": [],
        **changed,
    }


def record(*pairs: dict[str, Any], **changed: Any) -> Record:
    """What the command prints."""
    return {
        "job": "sample-job",
        "notes": [],
        "b": 2000,
        "seed": 1,
        "level": 0.95,
        "family": "1 pair of models, within: all metrics (2 tests)",
        "pairs": list(pairs),
        **changed,
    }


@dataclass
class FakeChild:
    """Answers with what it is given, or fails, as soon as it may."""

    answer: list[Record] | CommandFailed = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    may: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: int = 0
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.may.set()

    async def records(self, *arguments: str) -> list[Record]:
        self.asked.append(arguments)
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if isinstance(self.answer, CommandFailed):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.is_closed = True
