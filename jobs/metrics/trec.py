"""Judgements and runs in trec_eval's formats.

trec_eval ignores a run's rank column, sorts by score in single precision and breaks
ties by falling id. So that it sees the list as it is, what is written as a score is the
number of items below: strictly falling whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from jobs.metrics.ranking import Grades, order

_SPACE = re.compile(r"\s")
_PLAIN = re.compile(r"[A-Za-z0-9_.:|/-]+")
"""Ids that need no escaping; most are, and finding that out is much faster."""
_QREL_FIELDS = 4
_RUN_FIELDS = 6


def qrels_lines(
    gold: Mapping[str, Grades], *, escape_ids: bool = False
) -> Iterator[str]:
    """`qid 0 docid rel`, a line a judgement.

    Raises:
        ValueError: for an id that is empty or has white space.
    """
    for query, grades in gold.items():
        if not grades:
            continue
        qid = _word(query, escape_ids)
        for item, grade in grades.items():
            yield f"{qid} 0 {_word(item, escape_ids)} {grade:g}\n"


def run_lines(
    ranked: Mapping[str, Sequence[str]], tag: str, *, escape_ids: bool = False
) -> Iterator[str]:
    """`qid Q0 docid rank score tag`, a line an item; the score is items below it."""
    for query, items in ranked.items():
        if not items:
            continue
        qid, own_tag = _word(query, escape_ids), _word(tag, escape_ids)
        for rank, item in enumerate(items, start=1):
            docid, score = _word(item, escape_ids), len(items) - rank
            yield f"{qid} Q0 {docid} {rank} {score} {own_tag}\n"


def _word(text: str, escape: bool) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if escape:
        return quote(text, safe="/:.,;=+-_|()[]{}@!$&'*~^<>\"\\`?#")
    if not text or _SPACE.search(text):
        raise ValueError(
            f"The id {text!r} is empty or has white space, which trec_eval's format "
            "cannot hold; use --escape-ids."
        )
    return text


def read_qrels(path: Path, *, escape_ids: bool = False) -> dict[str, dict[str, float]]:
    """Grades by query and item; raise `ValueError` naming file and line."""
    gold: dict[str, dict[str, float]] = {}
    for number, words in _fields(path, _QREL_FIELDS, "qid 0 docid rel"):
        query, _, item, grade = words
        own = gold.setdefault(_id(query, escape_ids), {})
        item = _id(item, escape_ids)
        if item in own:
            raise ValueError(f"{path}, line {number}: {item!r} is judged twice.")
        own[item] = _float(grade, path, number)
    return gold


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """The lists of a run, by query, as trec_eval would read them."""

    ranked: Mapping[str, Sequence[str]]
    contradicting: int  #: lists whose ranks say another order than their scores
    first_contradicting: str | None


def read_run(path: Path, *, escape_ids: bool = False) -> RunFile:
    """Lists by query, in the order of their scores, ties by falling id.

    Raises:
        ValueError: naming file and line, where a line is off or an item listed twice.
    """
    lines: dict[str, list[tuple[str, int, float]]] = {}
    for number, words in _fields(path, _RUN_FIELDS, "qid Q0 docid rank score tag"):
        query, _, item, rank, score, _ = words
        lines.setdefault(_id(query, escape_ids), []).append(
            (
                _id(item, escape_ids),
                int(_float(rank, path, number)),
                _float(score, path, number),
            )
        )
    ranked: dict[str, Sequence[str]] = {}
    contradicting: list[str] = []
    for query, own in lines.items():
        ids = [item for item, _, _ in own]
        if len(set(ids)) < len(ids):
            raise ValueError(f"{path}: query {query!r} lists an item twice.")
        ranked[query] = order([score for _, _, score in own], ids, ties="trec")
        if ranked[query] != [item for item, _, _ in sorted(own, key=lambda x: x[1])]:
            contradicting.append(query)
    return RunFile(
        ranked=ranked,
        contradicting=len(contradicting),
        first_contradicting=contradicting[0] if contradicting else None,
    )


def _fields(path: Path, count: int, form: str) -> Iterable[tuple[int, list[str]]]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        words = line.split()
        if words and len(words) != count:
            raise ValueError(
                f"{path}, line {number}: {len(words)} fields instead of {form!r}."
            )
        if words:
            yield number, words


def _id(word: str, escaped: bool) -> str:
    return unquote(word) if escaped else word


def _float(word: str, path: Path, number: int) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{path}, line {number}: {word!r} is no number.") from None
