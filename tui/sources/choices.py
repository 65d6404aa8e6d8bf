"""What a run can be compared with: its own models, and those of other runs of its job.

Pure: the runs of a folder are given as a list of them was seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from store.runs import RunFolder
from tui.sources.child import ChildFailed
from tui.sources.comparing import Words, run_of
from tui.sources.listing import Listed
from tui.sources.run import Snapshot

SUBJECT = "subject"
"""The role of the models whose answers are scored."""
_SIDES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something to compare with, and how the command is told."""

    words: Words
    what: str  #: how models meet, where there are several pairs of them
    state: str  #: of the other run, in one word
    ended: int  #: its tasks that came to an end
    planned: int


def choices(own: Snapshot, name: str, listed: Sequence[Listed]) -> Iterator[Choice]:
    """All that the run *own* can be compared with, the likeliest first.

    Its own models come before other runs, and a model with itself before others.

    Args:
        own: the run that is A.
        name: how the command is told of it: its id, or its folder.
        listed: the runs of the folder; those of other jobs are passed over.
    """
    models = _models(own)
    if len(models) > 1:
        yield _choice(own, (name,), f"its {len(models)} models, each with each")
    for a, b in itertools.combinations(models, 2):
        yield _choice(own, (f"{name}:{a}", f"{name}:{b}"))
    others = list(_others(own, listed))
    for run, other in others:
        shared = [model for model in models if model in _models(other)]
        if len(shared) > 1:
            yield _choice(other, (name, run), f"{len(shared)} models, each with itself")
        for model in shared:
            yield _choice(other, (f"{name}:{model}", f"{run}:{model}"))
    for run, other in others:
        for a, b in itertools.product(models, _models(other)):
            if a != b:
                yield _choice(other, (f"{name}:{a}", f"{run}:{b}"))


def _others(own: Snapshot, listed: Sequence[Listed]) -> Iterator[tuple[str, Snapshot]]:
    """The other runs of its job that the command can be told of."""
    for each in listed:
        run, seen = each.folder.run_id, each.sight
        is_name = RunFolder.is_valid_id(run) and run != own.status.run_id
        if is_name and isinstance(seen, Snapshot) and seen.status.job == own.status.job:
            yield run, seen


def _choice(seen: Snapshot, words: Words, what: str = "") -> Choice:
    return Choice(
        words=words,
        what=what,
        state=seen.state,
        ended=seen.ended,
        planned=seen.status.tasks.planned,
    )


def _models(seen: Snapshot) -> list[str]:
    return list(seen.status.models.get(SUBJECT, ()))


def typed(name: str, text: str) -> Words:
    """What a person means who types B, or A and B.

    Args:
        name: how the command is told of the run that is A.
        text: a run or its folder, with or without a model; before it perhaps A's.

    Raises:
        ChildFailed: it is nothing that can be asked.
    """
    words = (text,) if Path(text).is_dir() else tuple(text.split())
    if len(words) == 1:
        words = (name, *words)
    # whatever begins like this would be an option: the command has one that writes
    if len(words) != _SIDES or any(word.startswith("-") for word in words):
        raise ChildFailed(f"{text!r} names no run: type RUN or RUN:MODEL")
    if run_of(words[0]) != name:
        raise ChildFailed(
            f"A is the run that is watched, so the first of two is {name} or "
            f"{name}:MODEL"
        )
    return words
