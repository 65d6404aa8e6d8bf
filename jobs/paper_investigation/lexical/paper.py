"""A paper as passages to search: its sentences and table rows, with word weights.

Indexing is the costly step, so the last few papers are kept: a model's questions about
a paper come together.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobs.paper_investigation.lexical.alleles import spell_out
from jobs.paper_investigation.variants import plain_signs

KEPT_PAPERS = 8

_REFERENCES = re.compile(
    r"^#+ *(?:\d+\.? *)?(?:references|bibliography|literature cited)\b.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
# Markdown typesets "*CYP2C9* *2" and "CYP3A5**3*"; a star before a digit names an
# allele, any other star is emphasis or a footnote mark.
_ESCAPE = re.compile(r"\\([*_<>|])")
_DOUBLED_STAR = re.compile(r"\*{2,}(?=\d)")
_EMPHASIS = re.compile(r"\*+(?!\d)")

_SENTENCE_END = re.compile(
    r"(?<!et al\.)(?<!\bvs\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?])"
    r"\s+(?=[a-z(\[*\"])"
)
_RULE_ROW = re.compile(r"\|[\s:|-]+")
_CAPTION = re.compile(r"\btable\b")
_CATEGORY = re.compile(r"^[a-z /-]+:\s*(?=[a-z])")
_TOKEN = re.compile(r"[a-z0-9]+(?:[*:.-][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence, heading or table row, folded to plain lower case."""

    text: str  #: of a row: "header: cell; header: cell"
    tokens: frozenset[str]  #: of a row: those of the table's caption as well
    is_prominent: bool  #: of the title, the abstract or a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper's passages up to its reference list."""

    text: str  #: folded, whole
    passages: tuple[Passage, ...]
    weights: Mapping[str, float]  #: inverse document frequency by word
    places: Mapping[str, tuple[int, ...]]  #: passages that hold a word


def words(text: str) -> frozenset[str]:
    """The distinct words of a folded text; an allele is one word."""
    return frozenset(_TOKEN.findall(text))


def fold(text: str) -> str:
    """Lower case, plain signs, emphasis marks taken off, alleles spelt out."""
    return spell_out(_plain(text))


def _plain(text: str) -> str:
    text = _ESCAPE.sub(r"\1", plain_signs(text).casefold())
    return _EMPHASIS.sub("", _DOUBLED_STAR.sub("*", text))


def names(field: str) -> tuple[str, ...]:
    """What a folded field names: its parts at commas, without their categories."""
    return tuple(_CATEGORY.sub("", part.strip()) for part in field.split(","))


def occurs(name: str, text: str) -> bool:
    """Whether a folded *name* stands in a folded *text* as words of its own."""
    return position(name, text) is not None


def position(name: str, text: str) -> int | None:
    """Where a folded *name* first stands in *text* without a letter or digit beside."""
    start = text.find(name) if name else -1
    while start >= 0:
        end = start + len(name)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            return start
        start = text.find(name, start + 1)
    return None


@functools.lru_cache(maxsize=KEPT_PAPERS)
def index(text: str) -> Paper:
    """Index a paper's text."""
    passages = tuple(_passages(_plain(_REFERENCES.sub("", text))))
    places: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        for word in passage.tokens:
            places.setdefault(word, []).append(number)
    count = len(passages)
    return Paper(
        text="\n".join(passage.text for passage in passages),
        passages=passages,
        weights={word: math.log(1 + count / len(at)) for word, at in places.items()},
        places={word: tuple(at) for word, at in places.items()},
    )


def overlap(paper: Paper, wanted: Iterable[str]) -> dict[int, float]:
    """By passage, the share of the weight of *wanted* words that it holds.

    A word that the paper lacks weighs as much as one that it holds once. Shares are
    rounded, so that the last digit of a logarithm decides no tie.
    """
    once = math.log(1 + len(paper.passages))
    weights = {word: paper.weights.get(word, once) for word in sorted(wanted)}
    total = sum(weights.values())
    scores: dict[int, float] = {}
    for word, weight in weights.items():
        for number in paper.places.get(word, ()):
            scores[number] = scores.get(number, 0.0) + weight / total
    return {number: round(share, 9) for number, share in scores.items()}


def _passages(text: str) -> Iterator[Passage]:
    lines = [line.strip() for line in text.split("\n")]
    section = "title"
    caption = ""
    blocks = itertools.groupby(
        (line for line in lines if line), key=lambda line: line.startswith("|")
    )
    for is_table, block in blocks:
        if is_table:
            yield from _rows(list(block), words(spell_out(caption)))
            continue
        for line in block:
            if line.startswith("#"):
                section = _section(line, section)
            if _CAPTION.search(line):
                caption = line
            for sentence in _SENTENCE_END.split(line.lstrip("# ")):
                text = spell_out(sentence)
                yield Passage(
                    text=text,
                    tokens=words(text),
                    is_prominent=section in {"title", "abstract"},
                )


def _section(heading: str, current: str) -> str:
    """The title is the first-level heading; an abstract lasts to the next heading."""
    if heading.startswith("# ") and current == "title":
        return "title"
    return "abstract" if "abstract" in heading else "body"


def _rows(lines: list[str], caption: frozenset[str]) -> Iterator[Passage]:
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if not _RULE_ROW.fullmatch(line)
    ]
    header = table[0] if table else []
    for row in table:
        cells = (
            f"{label}: {cell}" if label and row is not header else cell
            for label, cell in itertools.zip_longest(header, row, fillvalue="")
            if cell
        )
        text = spell_out("; ".join(cells))
        yield Passage(text=text, tokens=words(text) | caption, is_prominent=True)
