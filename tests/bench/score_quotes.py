"""Grounding: 100,000 quotes looked up in papers of 60 KB.

Seconds are the processor's. Each paper is folded and its numbers are read once, as at
scoring; of twenty quotes twelve stand in it as they are. Beside it stands what it takes
in the same run where no paper is kept: each quote folds it anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jobs.kit.grounding import PaperText, ground
from jobs.property_extraction.stated_numbers import numbers_in
from tests.bench.prose import prose
from tests.bench.row import Row
from tests.bench.verdict import least, most

TARGET = "properties"
SIZE = 60_000
TEXTS = 64
LINE = 90
"""Characters of a line, so that quotes reach over its end."""
SAMPLE = 25
"""Papers that the plain way is tried on; the rest in a straight line."""

Altered = Callable[[random.Random, str], str]


def measure(quick: bool) -> list[Row]:
    """Five thousand papers with twenty quotes each; quickly: a tenth."""
    papers = 500 if quick else 5_000
    chance = random.Random(20260118)
    texts = [_text(seed) for seed in range(TEXTS)]
    quotes = [_quotes(chance, text) for text in texts]
    seconds = _timed(partial(_grounded, papers, texts, quotes))
    n = papers * len(KINDS)
    anew = _timed(partial(_anew, texts, quotes)) * papers / SAMPLE
    return list(_rows(n, seconds, anew, None if quick else 60))


def _rows(n: int, seconds: float, anew: float, goal: float | None) -> Iterator[Row]:
    what = f"{n:,} quotes in papers of {SIZE // 1000} KB"
    yield most(TARGET, f"{what}, s", seconds, goal)
    yield least(TARGET, "with papers folded anew, times longer", anew / seconds, 1)


def _grounded(
    papers: int, texts: Sequence[str], quotes: Sequence[Sequence[str]]
) -> None:
    for number in range(papers):
        paper = PaperText(texts[number % TEXTS])
        numbers_in(paper.text)
        for quote in quotes[number % TEXTS]:
            ground(paper, quote)


def _anew(texts: Sequence[str], quotes: Sequence[Sequence[str]]) -> None:
    for text, own in zip(texts[:SAMPLE], quotes, strict=False):
        for quote in own:
            paper = PaperText(text)
            numbers_in(paper.folded.text)
            ground(paper, quote)


def _text(seed: int) -> str:
    """Lines of words with numbers, units and an Ångström sign now and then."""
    chance = random.Random(seed)
    words = prose(SIZE, seed).decode().split()
    lines, line = [], ""
    for word in words:
        shown = f"{chance.uniform(1, 999):.4g} Å" if chance.random() < 0.05 else word
        line = f"{line} {shown}" if line else shown
        if len(line) > LINE:
            lines.append(line)
            line = ""
    return "\n".join([*lines, line])


def _quotes(chance: random.Random, text: str) -> list[str]:
    quotes = []
    for altered in KINDS:
        start = chance.randrange(len(text) - 200)
        quotes.append(altered(chance, text[start : start + chance.randint(60, 180)]))
    return quotes


def _as_it_is(_: random.Random, quote: str) -> str:
    return quote


def _set_anew(_: random.Random, quote: str) -> str:
    return "  ".join(quote.split())


def _elided(_: random.Random, quote: str) -> str:
    return f"{quote[:25]} ... {quote[-25:]}"


def _misspelt(chance: random.Random, quote: str) -> str:
    at = chance.randrange(len(quote))
    return f"{quote[:at]}#{quote[at + 1 :]}"


def _invented(chance: random.Random, quote: str) -> str:
    words = quote.split()
    chance.shuffle(words)
    return " ".join(words)


KINDS: Sequence[Altered] = (
    *[_as_it_is] * 12,
    *[_set_anew] * 3,
    _elided,
    *[_misspelt] * 2,
    *[_invented] * 2,
)
"""How the quotes of a paper differ from its text."""


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
