"""What identifies a task: a paper or a piece of it, a pair of names, a name.

A question with other targets is another question, so their hash is part of its key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

ARROW: Final = " => "

DIGEST: Final = 12
"""Hex digits of a hash in a key."""

_PIECE: Final = re.compile(r"(?P<refno>.*)#(?P<number>[1-9][0-9]*)", re.DOTALL)


def piece_key(refno: str, number: int | None) -> str:
    """The key of a piece of a paper, from 1; None: of the whole paper."""
    return refno if number is None else f"{refno}#{number}"


def paper_of(key: str) -> tuple[str, int | None]:
    """Refno and piece of a key; the piece is None where the paper is whole."""
    found = _PIECE.fullmatch(key)
    return (key, None) if found is None else (found["refno"], int(found["number"]))


def pair_key(pred_name: str, gt_name: str) -> str:
    """The key of a pair of names; with a hash where the first one holds an arrow."""
    key = f"{pred_name}{ARROW}{gt_name}"
    return f"{key} #{_digest(pred_name)}" if ARROW in pred_name else key


def choice_key(pred_name: str, targets: Sequence[str]) -> str:
    """The key of a name that is offered these targets."""
    return f"{pred_name}{ARROW}#{_digest(*targets)}"


def _digest(*names: str) -> str:
    packed = "\n".join(names).encode("utf-8", "surrogatepass")
    return sha256(packed).hexdigest()[:DIGEST]
