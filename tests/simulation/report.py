"""What happened in simulated runs, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True, kw_only=True)
class Report:
    """One run, or many: reports add up."""

    runs: int = 0
    processes: int = 0
    steps: int = 0  #: turns of the loop
    events: int = 0
    attempts: int = 0  #: requests that reached a provider
    virtual_s: float = 0.0
    acts: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)  #: of processes

    def __iadd__(self, other: Report) -> Self:
        """Count *other* in."""
        self.runs += other.runs
        self.processes += other.processes
        self.steps += other.steps
        self.events += other.events
        self.attempts += other.attempts
        self.virtual_s += other.virtual_s
        self.acts += other.acts
        self.fates += other.fates
        self.ends += other.ends
        return self

    def table(self, took_s: float) -> str:
        """The counts as text, a line each."""
        rows = [
            ("runs", f"{self.runs:,}"),
            ("processes", f"{self.processes:,}"),
            ("steps", f"{self.steps:,}"),
            ("events", f"{self.events:,}"),
            ("attempts", f"{self.attempts:,}"),
            ("virtual hours", f"{self.virtual_s / 3600:,.1f}"),
            ("seconds", f"{took_s:,.1f}"),
            ("interference", _counted(self.acts)),
            ("what befell requests", _counted(self.fates)),
            ("how processes ended", _counted(self.ends)),
        ]
        return "\n".join(f"{name:22}{value}" for name, value in rows)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()))
