"""What a run can be compared with: its own models, and those of other runs of its job.

Pure: the runs of a folder are given as a list of them was seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from store.runs import RunFolder
from tui.sources.comparing import Words, run_of
from tui.sources.listing import Listed
from tui.sources.sight import Snapshot

SUBJECT = "subject"
"""The role of the models whose answers are scored."""
_SIDES = 2


class NoChoice(Exception):
    """What was typed names nothing to compare with; the message says what would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something to compare with, and how the command is told."""

    words: Words
    a: str  #: a model of the run, or how many
    b: str  #: the other run and a model of it, or how those of both meet
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
    mine = _models(own)
    if len(mine) > 1:
        yield _choice(own, (name,), f"its {len(mine)} models", "each with each")
    for a, b in itertools.combinations(mine, 2):
        yield _choice(own, (f"{name}:{a}", f"{name}:{b}"), a, b)
    others = list(_others(own, name, listed))
    for run, seen in others:
        shared = [model for model in mine if model in _models(seen)]
        if len(shared) > 1:
            meet = f"{run}  each with itself"
            yield _choice(seen, (name, run), f"{len(shared)} models", meet)
        for model in shared:
            yield _pair(seen, (name, model), (run, model))
    for run, seen in others:
        for a, b in itertools.product(mine, _models(seen)):
            if a != b:
                yield _pair(seen, (name, a), (run, b))


def _others(
    own: Snapshot, name: str, listed: Sequence[Listed]
) -> Iterator[tuple[str, Snapshot]]:
    """The other runs of its job that the command can be told of."""
    for each in listed:
        run, seen = each.folder.run_id, each.sight
        is_other = RunFolder.is_valid_id(run) and run != name
        if (
            is_other
            and isinstance(seen, Snapshot)
            and seen.status.job == own.status.job
        ):
            yield run, seen


def _pair(seen: Snapshot, a: tuple[str, str], b: tuple[str, str]) -> Choice:
    """Two models, each with its run."""
    return _choice(seen, (":".join(a), ":".join(b)), a[1], "  ".join(b))


def _choice(seen: Snapshot, words: Words, a: str, b: str) -> Choice:
    return Choice(
        words=words,
        a=a,
        b=b,
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
        NoChoice: it is nothing that can be compared with.
    """
    words = (text,) if Path(text).is_dir() else tuple(text.split())
    if len(words) == 1:
        words = (name, *words)
    # whatever begins like this would be an option: the command has one that writes
    if len(words) != _SIDES or any(word.startswith("-") for word in words):
        raise NoChoice(f"{text!r} names no run: type RUN or RUN:MODEL")
    if run_of(words[0]) != name:
        raise NoChoice(
            f"A is the run that is watched, so the first of two is {name} or "
            f"{name}:MODEL"
        )
    return words
