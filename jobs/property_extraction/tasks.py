"""Keys of tasks, and the questions of a verification about names.

Other targets make another question, so a hash of them is part of its key.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from jobs.property_extraction.name_pairs import NamePair

ARROW: Final = " => "

DIGEST: Final = 12
"""Hex digits of a hash in a key."""

_PIECE: Final = re.compile(r"(?P<refno>.*)#(?P<number>[1-9][0-9]*)", re.DOTALL)


def piece_key(refno: str, number: int | None) -> str:
    """Return the key of a chunk of a paper, from 1; None: of the whole paper."""
    return refno if number is None else f"{refno}#{number}"


def paper_of(key: str) -> tuple[str, int | None]:
    """Return refno and chunk of a key; the chunk is None for a whole paper."""
    match = _PIECE.fullmatch(key)
    return (key, None) if match is None else (match["refno"], int(match["number"]))


def pair_key(pred_name: str, gt_name: str) -> str:
    """Return the key of a pair of names, with a hash if the first one has an arrow."""
    key = f"{pred_name}{ARROW}{gt_name}"
    return f"{key} #{_digest(pred_name)}" if ARROW in pred_name else key


def choice_key(pred_name: str, targets: Sequence[str]) -> str:
    """Return the key of a choice among targets."""
    return f"{pred_name}{ARROW}#{_digest(*targets)}"


def _digest(*names: str) -> str:
    packed = "\n".join(names).encode("utf-8", "surrogatepass")
    return sha256(packed).hexdigest()[:DIGEST]


AUTO: Final = "auto_verified"
"""Skip reason: the names are equal except for case."""

DONE: Final = "already_verified"
"""Skip reason: the inputs contain a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameQuestion:
    """A task of stage `verify`."""

    key: str
    pairs: tuple[
        NamePair, ...
    ]  #: of one predicted name; one pair unless it is a choice
    is_choice: bool = False
    skip: str | None = None

    @property
    def pred_name(self) -> str:
        """The predicted name."""
        return self.pairs[0].pred_name

    @property
    def targets(self) -> tuple[str, ...]:
        """Possible targets, in the order of their letters."""
        return tuple(pair.gt_name for pair in self.pairs)


def name_questions(
    pairs: Iterable[NamePair],
    form: Literal["pair", "choice"],
    verified: Container[tuple[str, str]] = frozenset(),
) -> Iterator[NameQuestion]:
    """Yield the questions about pairs, also those that need no request.

    Args:
        pairs: distinct candidates.
        form: whether a question has one target of a name, or all.
        verified: pairs of names that have a verdict already.
    """
    together: dict[str, list[NamePair]] = {}
    for pair in pairs:
        if pair.is_equal or form == "pair":
            skip = AUTO if pair.is_equal else _done((pair,), verified)
            key = pair_key(*pair.names)
            yield NameQuestion(key=key, pairs=(pair,), skip=skip)
        else:
            together.setdefault(pair.pred_name, []).append(pair)
    for name, targets in together.items():
        yield NameQuestion(
            key=choice_key(name, [pair.gt_name for pair in targets]),
            pairs=tuple(targets),
            is_choice=True,
            skip=_done(targets, verified),
        )


def _done(
    pairs: Iterable[NamePair], verified: Container[tuple[str, str]]
) -> str | None:
    """Return the skip reason if every pair has a verdict, else None."""
    is_done = all(pair.names in verified for pair in pairs)
    return DONE if is_done else None
