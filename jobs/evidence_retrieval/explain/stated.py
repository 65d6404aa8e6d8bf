"""What an imported run says of a query: its numbers, and the state that they give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.explain.decisions import state_of
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions
from jobs.metrics import assign
from jobs.metrics.columns import Floats, Ints
from jobs.metrics.selective import STATES
from jobs.text import TextColumn, clip, text_table

NAME_WIDTH = 30


def stated_lines(predictions: Predictions, place: int) -> Iterator[str]:
    """Every number that the files give, then the state by file and by thresholds."""
    found = {name: value for name, value in _numbers(predictions, place) if value}
    found |= {"state": state_of(predictions, place)}
    found |= {"state by p and taus": _recomputed(predictions, place)}
    titles = [clip(name, NAME_WIDTH) for name in found]
    yield from text_table(
        [
            TextColumn(title="the files say", cells=titles, has_words=True),
            TextColumn(title="", cells=list(found.values()), has_words=True),
        ]
    )


def _numbers(predictions: Predictions, place: int) -> Iterator[tuple[str, str]]:
    yield "p raw", _float(predictions.prob_raw, place)
    yield "p", _float(predictions.prob, place)
    yield "score", _float(predictions.score, place)
    yield "tau_neg", _float(predictions.tau_neg, place)
    yield "tau_pos", _float(predictions.tau_pos, place)
    yield "K", _int(predictions.k, place)
    for gamma, k in predictions.sweep.items():
        yield f"K at gamma {gamma:g}", _int(k, place)
    for name, values in predictions.given.items():
        yield name, _float(values, place)


def _float(column: Floats | None, place: int) -> str:
    """A number as it stands in a file; empty where there is none."""
    value = np.nan if column is None else float(column[place])
    return "" if np.isnan(value) else f"{value:.12g}"


def _int(column: Ints | None, place: int) -> str:
    value = UNKNOWN if column is None else int(column[place])
    return "" if value == UNKNOWN else str(value)


def _recomputed(predictions: Predictions, place: int) -> str:
    columns = (predictions.prob, predictions.tau_neg, predictions.tau_pos)
    own = [np.nan if each is None else float(each[place]) for each in columns]
    if np.isnan(own).any():
        return "not known: p or a threshold is missing"
    p, low, high = own
    below, at = (
        STATES[assign(np.array([p]), low, high, edge=edge)[0]] for edge in ("lt", "le")
    )
    return below if below == at else f"{below}; {at} if p = tau_neg counts as NEG"
