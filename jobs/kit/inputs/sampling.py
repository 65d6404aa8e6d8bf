"""Draws a sample of a data set, for trial runs with `--limit`.

The draw is stratified and needs no random state: items are ordered by a hash of their
keys, and strata are interleaved by share. The same items come out on every machine, in
whatever order they are given, and a larger limit contains every smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from runner.scorecard import LIMITS, Finding

CODE: Final = "sample"
"""The code of the finding that reports a draw."""

_HASH_SPACE: Final = 2**64

T = TypeVar("T")

Stratum = Callable[[T], Hashable]
"""Names the stratum of an item, such as its kind or its review."""


def draw_sample(
    items: Iterable[T],
    limit: int,
    *,
    key: Callable[[T], str],
    strata: Sequence[Stratum[T]] = (),
) -> tuple[T, ...]:
    """Draws a stratified sample and keeps the order of the items.

    The first function of *strata* divides the items, the next one divides each of its
    strata, and so on. The sample holds the same share of every first stratum, rounded
    up: a rare kind is never left out where the limit is at least the number of kinds.
    Finer strata keep their share on average.

    Args:
        items: in any order.
        limit: size of the sample; 0 takes all items.
        key: identity of an item, unique among all items.
        strata: coarsest level first.
    """
    every = tuple(items)
    if not limit or limit >= len(every):
        return every
    selected = set(_ordered(range(len(every)), every, key, strata)[:limit])
    return tuple(item for index, item in enumerate(every) if index in selected)


def report_sample(
    findings: InputFindings,
    sample: Sequence[T],
    every: Sequence[T],
    unit: str,
    keeps: str = "",
) -> None:
    """Adds the finding that a run covers a sample.

    Args:
        findings: takes the finding; unchanged where nothing was left out.
        sample: the sample.
        every: what it was drawn from.
        unit: what one item is, such as "record".
        keeps: what the draw is stratified by, such as "kind and review".
    """
    if len(sample) == len(every):
        return
    shares = f"; the sample keeps the share of each {keeps}" if keeps else ""
    findings.add(
        CODE,
        "info",
        LIMITS,
        f"A sample of {len(sample):,} of {plural(len(every), unit)} (--limit), "
        f"drawn by hash{shares}.",
        n=len(sample),
    )


def sample_sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences of a summary that say how large the sample is."""
    return tuple(finding.message for finding in findings if finding.code == CODE)


def _ordered(
    indices: Sequence[int],
    every: Sequence[T],
    key: Callable[[T], str],
    strata: Sequence[Stratum[T]],
) -> list[int]:
    """All places in the order in which growing limits take them."""
    order = sorted(
        indices, key=lambda index: (_hashed(key(every[index])), key(every[index]))
    )
    # from the finest level to the coarsest: each one interleaves what the finer made
    for level in range(len(strata), 0, -1):
        order = _interleaved(order, every, strata[:level])
    return order


def _interleaved(
    order: Sequence[int], every: Sequence[T], strata: Sequence[Stratum[T]]
) -> list[int]:
    """Interleaves the strata of the last level, inside those of the levels before.

    The i-th of n items of a stratum stands at (i + start) / n. On the first level all
    start at 0, which is Adams' method of apportionment: each stratum has one item
    before any has two. Finer strata start at random: they are often smaller than one
    item of the sample, and would all want to be first.
    """
    *outer, last_level = strata
    sizes: dict[Hashable, int] = {}
    paths = {}
    for index in order:
        path = tuple(level(every[index]) for level in (*outer, last_level))
        paths[index] = path
        sizes[path] = sizes.get(path, 0) + 1
    seen: dict[Hashable, int] = {}
    positions: dict[int, tuple[float, int]] = {}
    for rank, index in enumerate(order):
        path = paths[index]
        i = seen.get(path, 0)
        seen[path] = i + 1
        start = _hashed(repr(path)) / _HASH_SPACE if outer else 0.0
        positions[index] = ((i + start) / sizes[path], rank)
    return sorted(order, key=positions.__getitem__)


def _hashed(text: str) -> int:
    packed = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(packed).digest()[:8])
