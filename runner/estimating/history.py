"""What replies were like in a job's earlier runs: the best guess for the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from store.database import open_reader
from store.errors import StoreError
from store.read.status import run_started
from store.read.usage import usage_counts
from store.runs import list_runs

ENOUGH: Final = 20
"""Replies that make a mean."""
NEWEST: Final = 50
"""Runs that are looked at; each costs some milliseconds."""


def usual_replies(runs_dir: Path, job: str) -> dict[tuple[str, str], float]:
    """Mean tokens of a reply by stage and model, from the newest run that knows.

    Runs are taken by name, which begins with the time unless a person chose it; those
    that cannot be read are passed over.
    """
    found: dict[tuple[str, str], float] = {}
    for folder in reversed(list_runs(runs_dir)[-NEWEST:]):
        try:
            with open_reader(folder.log) as reader:
                if run_started(reader).job != job:
                    continue
                counts = usage_counts(reader)
        except StoreError:
            continue
        for use in counts:
            if use.replies >= ENOUGH and use.tokens_out:
                mean = use.tokens_out / use.replies
                found.setdefault((use.stage, use.model), mean)
    return found
