"""Ranked lists against gold: recall, precision, MAP, MRR, nDCG; trec_eval's files.

The given list is the ranking; scores are not looked at. Where only scores exist,
`order` makes a list of them. `hits` compares lists with gold once, `evaluate` computes
everything else from its matrix, a query a row.

trec_eval ignores a run's rank column, sorts by score in single precision and breaks
ties by falling id. So that it sees the list as it is, what is written as a score is the
number of items below: strictly falling whole numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

import numpy as np

from jobs.kit.metrics.columns import Bools, Floats, Ints, quotient

Grades: TypeAlias = Mapping[str, float]
"""Judged items of one query with their grade; 0 is judged and not relevant."""

Gold: TypeAlias = Collection[str] | Grades
"""Gold of a query: relevant ids, or grades by id."""

INFAP_EPSILON = 0.00001
"""As trec_eval has it (Yilmaz and Aslam, 2006)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedHits:
    """Lists compared with gold: a query a row, a rank a column, padded to the right."""

    gains: Floats  #: (Q, D) grade of the item at each rank; 0 where not relevant
    judged: Bools  #: (Q, D) whether its grade is known
    lengths: Ints  #: (Q,) items in the list
    relevant: Ints  #: (Q,) relevant items, retrieved or not
    irrelevant: Ints  #: (Q,) items judged not relevant, retrieved or not
    ideal: Floats  #: (Q, G) grades of the relevant items, falling, padded with 0

    @property
    def is_hit(self) -> Bools:
        """(Q, D) whether the item at each rank is relevant."""
        return self.gains > 0


def hits(
    gold: Sequence[Gold],
    ranked: Sequence[Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    dedupe: Literal["error", "first"] = "error",
) -> RankedHits:
    """Compare each list with the gold of its query.

    Args:
        gold: for each query the relevant ids, or grades by id. Doubles collapse.
        ranked: for each query the retrieved ids, best first.
        names: the queries' names, for errors.
        dedupe: what to do with an id that stands in a list twice; `first` keeps its
            first place.

    Raises:
        ValueError: for a double, or where the lengths differ.
    """
    if len(gold) != len(ranked):
        raise ValueError(f"gold has {len(gold)} queries and ranked has {len(ranked)}.")
    lists = _without_doubles(ranked, names, dedupe)
    grades: list[Grades] = [
        query_gold
        if isinstance(query_gold, Mapping)
        else dict.fromkeys(query_gold, 1.0)
        for query_gold in gold
    ]
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    depth = int(lengths.max(initial=0))
    inside = np.arange(depth) < lengths[:, None]
    gains = np.zeros(inside.shape)
    judged = np.zeros(inside.shape, dtype=np.bool_)
    grade_of = chain.from_iterable(
        map(of.get, items, repeat(np.nan))
        for of, items in zip(grades, lists, strict=True)
    )
    item_grades = np.fromiter(grade_of, dtype=np.float64, count=int(lengths.sum()))
    judged[inside] = ~np.isnan(item_grades)
    gains[inside] = np.fmax(item_grades, 0.0)  # of a number and NaN, the number
    relevant = [
        sorted((g for g in of.values() if g > 0), reverse=True) for of in grades
    ]
    relevant_n = np.array(
        [len(query_grades) for query_grades in relevant], dtype=np.int64
    )
    ideal = np.zeros((len(lists), int(relevant_n.max(initial=0))))
    ideal[np.arange(ideal.shape[1]) < relevant_n[:, None]] = [
        grade for query_grades in relevant for grade in query_grades
    ]
    return RankedHits(
        gains=gains,
        judged=judged,
        lengths=lengths,
        relevant=relevant_n,
        irrelevant=np.array([len(of) for of in grades], dtype=np.int64) - relevant_n,
        ideal=ideal,
    )


def _without_doubles(
    ranked: Sequence[Sequence[str]],
    names: Sequence[str] | None,
    dedupe: Literal["error", "first"],
) -> list[Sequence[str]]:
    lists: list[Sequence[str]] = []
    for query, items in enumerate(ranked):
        if len(set(items)) == len(items):
            lists.append(items)
        elif dedupe == "first":
            lists.append(tuple(dict.fromkeys(items)))
        else:
            double = Counter(items).most_common(1)[0][0]
            name = names[query] if names is not None else f"query {query}"
            raise ValueError(f"{name} lists {double!r} twice.")
    return lists


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRules:
    """Choices between definitions that carry one name elsewhere."""

    empty: Literal["undefined", "zero"] = "undefined"  #: a query without gold
    precision_over: Literal["k", "k_eff"] = "k"  #: `k_eff`: min(K, length of the list)
    ap_over: Literal["gold", "min", "found"] = "gold"
    """Divisor of average precision: all gold, min(gold, K), or the hits found.
    """
    gain: Literal["linear", "exp"] = "linear"  #: `exp`: 2^grade - 1

    @property
    def definition(self) -> str:
        """The choices, for a metric's definition."""
        return (
            f"empty={self.empty}, precision over {self.precision_over}, "
            f"ap over {self.ap_over}, gain={self.gain}"
        )


SIFTLOG = RankingRules()


def evaluate(
    ranked_hits: RankedHits,
    ks: Sequence[int],
    rules: RankingRules = SIFTLOG,
    *,
    persistence: float = 0.8,
) -> dict[str, Floats]:
    """Every measure of every query: name -> (Q,), NaN where undefined.

    Per K: recall, precision, hit, mrr, map, ndcg, judged. Over the whole list: mrr, ap,
    rprec, bpref, infap, rbp and rbp_residual. A query whose gold was not retrieved has
    0, one without gold is undefined or 0 as the rules say.
    """
    depth = ranked_hits.gains.shape[1]
    hit, rank = ranked_hits.is_hit, np.arange(1, depth + 1)
    so_far = _running(hit)
    precision_sums = _running(np.where(hit, so_far[:, 1:] / rank, 0.0))
    first = np.where(so_far[:, -1] > 0, (so_far == 0).sum(axis=1), 0)
    reciprocal = np.nan_to_num(quotient(1.0, first))
    gains, ideal = (
        _gain(column, rules) for column in (ranked_hits.gains, ranked_hits.ideal)
    )
    dcg, best = (_running(g * _discounts(g.shape[1])) for g in (gains, ideal))
    judged = _running(ranked_hits.judged)
    measures: dict[str, Floats] = {}
    for k in ks:
        at = min(k, depth)
        top = so_far[:, at]
        seen = np.minimum(k, ranked_hits.lengths)
        measures[f"recall@{k}"] = quotient(top, ranked_hits.relevant)
        measures[f"precision@{k}"] = (
            top / k
            if rules.precision_over == "k"
            else np.nan_to_num(quotient(top, seen))
        )
        measures[f"hit@{k}"] = (top > 0).astype(np.float64)
        measures[f"mrr@{k}"] = np.where((first > 0) & (first <= k), reciprocal, 0.0)
        measures[f"map@{k}"] = _average_precision(
            precision_sums[:, at],
            top,
            np.minimum(ranked_hits.relevant, k),
            ranked_hits,
            rules,
        )
        measures[f"ndcg@{k}"] = quotient(dcg[:, at], best[:, min(k, ideal.shape[1])])
        measures[f"judged@{k}"] = np.nan_to_num(quotient(judged[:, at], seen))
    measures["mrr"] = reciprocal
    measures["ap"] = _average_precision(
        precision_sums[:, depth],
        so_far[:, depth],
        ranked_hits.relevant,
        ranked_hits,
        rules,
    )
    measures |= _whole_list(ranked_hits, so_far, judged)
    measures |= _rbp(ranked_hits, persistence)
    empty = ranked_hits.relevant == 0
    if empty.any():
        for name, column in measures.items():
            if not name.startswith(("judged@", "rbp_residual")):
                column[empty] = np.nan if rules.empty == "undefined" else 0.0
    return measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Counts in the first K of each list, where every query has its own K."""

    recall: Floats  #: (Q,) NaN without gold
    precision: Floats  #: (Q,) of the items shown; 0.0 where none is shown
    f1: Floats  #: (Q,) harmonic mean of both, 2 hits / (shown + gold); or NaN
    k_cut: Ints  #: (Q,) K, cut at the list's end


def select(ranked_hits: RankedHits, k: Ints) -> Selected:
    """Cut each list at its own *k*, which may be 0 or beyond the list.

    Raises:
        ValueError: where a k is negative.
    """
    if (wrong := k < 0).any():
        index = int(np.argmax(wrong))
        raise ValueError(f"k holds {k[index]} at index {index}, not 0 or more.")
    k_cut = np.minimum(k, ranked_hits.lengths)
    right = _running(ranked_hits.is_hit)[np.arange(len(k_cut)), k_cut]
    return Selected(
        recall=quotient(right, ranked_hits.relevant),
        precision=np.nan_to_num(quotient(right, k_cut)),
        f1=np.where(
            ranked_hits.relevant > 0,
            quotient(2 * right, k_cut + ranked_hits.relevant),
            np.nan,
        ),
        k_cut=k_cut,
    )


def _running(columns: Floats | Bools) -> Floats:
    """Running totals along the ranks, that of nothing in front."""
    totals = np.zeros((columns.shape[0], columns.shape[1] + 1))
    np.cumsum(columns, axis=1, out=totals[:, 1:])
    return totals


def _gain(grades: Floats, rules: RankingRules) -> Floats:
    return grades if rules.gain == "linear" else np.exp2(grades) - 1


def _discounts(depth: int) -> Floats:
    """1 / log2(rank + 1), from one table made with `math.log2`."""
    return np.array([1 / math.log2(rank + 1) for rank in range(1, depth + 1)])


def _average_precision(
    sums: Floats, top: Floats, least: Ints, ranked_hits: RankedHits, rules: RankingRules
) -> Floats:
    below = {"gold": ranked_hits.relevant, "min": least, "found": top}[rules.ap_over]
    return np.where(
        ranked_hits.relevant > 0, np.nan_to_num(quotient(sums, below)), np.nan
    )


def _whole_list(
    ranked_hits: RankedHits, so_far: Floats, judged: Floats
) -> dict[str, Floats]:
    """trec_eval's measures of the whole list."""
    hit, depth = ranked_hits.is_hit, ranked_hits.gains.shape[1]
    at = np.minimum(ranked_hits.relevant, depth)
    r_hits = so_far[np.arange(len(hit)), at] if len(hit) else np.empty(0)
    # what stands above each rank
    relevant_above = so_far[:, :-1]
    refused_above = (judged - so_far)[:, :-1]
    bound = np.minimum(ranked_hits.relevant, ranked_hits.irrelevant)[:, None]
    penalty = np.minimum(refused_above, ranked_hits.relevant[:, None])
    preferred = 1 - np.nan_to_num(quotient(penalty, bound))
    above = np.arange(depth)
    inferred = (relevant_above + INFAP_EPSILON) / (
        relevant_above + refused_above + 2 * INFAP_EPSILON
    )
    expected = (1 + (relevant_above + refused_above) * inferred) / (above + 1)
    return {
        "rprec": quotient(r_hits, ranked_hits.relevant),
        "bpref": quotient(
            np.where(hit, preferred, 0.0).sum(axis=1), ranked_hits.relevant
        ),
        "infap": quotient(
            np.where(hit, expected, 0.0).sum(axis=1), ranked_hits.relevant
        ),
    }


def _rbp(ranked_hits: RankedHits, persistence: float) -> dict[str, Floats]:
    """Rank-biased precision (Moffat and Zobel, 2008).

    The residual is what unjudged items and those below the list could add.
    """
    depth = ranked_hits.gains.shape[1]
    load = (1 - persistence) * persistence ** np.arange(depth)
    inside = np.arange(depth) < ranked_hits.lengths[:, None]
    unjudged = np.where(inside & ~ranked_hits.judged, load, 0.0).sum(axis=1)
    return {
        "rbp": np.where(ranked_hits.is_hit, load, 0.0).sum(axis=1),
        "rbp_residual": unjudged + persistence**ranked_hits.lengths,
    }


Ties: TypeAlias = Literal["position", "id_asc", "trec"]


def order(
    score: Sequence[float], ids: Sequence[str], ties: Ties = "position"
) -> list[str]:
    """The ids by falling score.

    Ties stay in the order given (`position`), or go by id (`id_asc`). `trec`: scores
    are rounded to single precision and ties go by falling id, as trec_eval reads a run.
    """
    column = np.asarray(score, dtype=np.float32 if ties == "trec" else np.float64)
    numbers = column.tolist()
    indices = range(len(numbers))
    if ties == "position":
        return [ids[i] for i in sorted(indices, key=lambda i: -numbers[i])]
    by_id = sorted(indices, key=lambda i: ids[i], reverse=ties == "trec")
    return [ids[i] for i in sorted(by_id, key=lambda i: -numbers[i])]


def fuse_rrf(rankings: Sequence[Sequence[str]], k: int = 60) -> list[str]:
    """Reciprocal rank fusion: by falling sum of 1 / (k + rank).

    Cormack and others, 2009. Ties keep the order in which the ids first appear, list by
    list. Not to be mistaken for `recall_at_share`, which some screening tools call RRF.
    """
    parts: dict[str, list[float]] = {}
    for items in rankings:
        for rank, item in enumerate(items, start=1):
            parts.setdefault(item, []).append(1 / (k + rank))
    total = {item: math.fsum(reciprocals) for item, reciprocals in parts.items()}
    return sorted(total, key=lambda item: -total[item])


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
        qid, escaped_tag = _word(query, escape_ids), _word(tag, escape_ids)
        for rank, item in enumerate(items, start=1):
            docid, score = _word(item, escape_ids), len(items) - rank
            yield f"{qid} Q0 {docid} {rank} {score} {escaped_tag}\n"


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
        grades = gold.setdefault(_id(query, escape_ids), {})
        item = _id(item, escape_ids)
        if item in grades:
            raise ValueError(f"{path}, line {number}: {item!r} is judged twice.")
        grades[item] = _float(grade, path, number)
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
    for query, entries in lines.items():
        ids = [item for item, _, _ in entries]
        if len(set(ids)) < len(ids):
            raise ValueError(f"{path}: query {query!r} lists an item twice.")
        ranked[query] = order([score for _, _, score in entries], ids, ties="trec")
        if ranked[query] != [
            item for item, _, _ in sorted(entries, key=lambda x: x[1])
        ]:
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
