"""What a verification asks: a question a pair of names, or one a name with its targets.

Pure; the order is that of the candidates.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from jobs.property_extraction.asking.keys import choice_key, pair_key
from jobs.property_extraction.inputs.candidates import Pair

AUTO: Final = "auto_verified"
"""Nobody is asked: the names are one but for case."""

DONE: Final = "already_verified"
"""A verdict was given with the inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A task of stage `verify`."""

    key: str
    pairs: tuple[Pair, ...]  #: of one predicted name; one pair unless it is a choice
    is_choice: bool = False
    skip: str | None = None

    @property
    def pred_name(self) -> str:
        """The name that is asked about."""
        return self.pairs[0].pred_name

    @property
    def targets(self) -> tuple[str, ...]:
        """The names that it may mean, in the order of their letters."""
        return tuple(pair.gt_name for pair in self.pairs)


def questions(
    pairs: Iterable[Pair],
    form: Literal["pair", "choice"],
    verified: Container[tuple[str, str]] = frozenset(),
) -> Iterator[Question]:
    """The questions about pairs, with those that need not be asked.

    Args:
        pairs: distinct candidates.
        form: whether a name's targets are asked about one by one, or together.
        verified: pairs of names that have a verdict already.
    """
    together: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.is_equal or form == "pair":
            skip = AUTO if pair.is_equal else _done((pair,), verified)
            key = pair_key(pair.pred_name, pair.gt_name)
            yield Question(key=key, pairs=(pair,), skip=skip)
        else:
            together.setdefault(pair.pred_name, []).append(pair)
    for name, targets in together.items():
        yield Question(
            key=choice_key(name, [pair.gt_name for pair in targets]),
            pairs=tuple(targets),
            is_choice=True,
            skip=_done(targets, verified),
        )


def _done(pairs: Iterable[Pair], verified: Container[tuple[str, str]]) -> str | None:
    """A choice is left out only where no target of it is new."""
    is_done = all((pair.pred_name, pair.gt_name) in verified for pair in pairs)
    return DONE if is_done else None
