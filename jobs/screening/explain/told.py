"""`siftlog explain screening [REVIEW]`: nothing is written and nothing is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from jobs.screening.explain.account import Account, account_of
from jobs.screening.explain.page import page
from jobs.screening.graph.relations import Graph
from jobs.screening.inputs.tables import read_corpus
from jobs.screening.settings import Settings
from runner.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An account in both forms."""

    text: str
    json: dict[str, object]


def explain_inputs(settings: Settings, items: tuple[str, ...]) -> Told:
    """How a review comes to its negatives.

    Args:
        settings: the inputs and the draw, as for `prepare`.
        items: a review's id; none: the first one that is easy to follow.

    Raises:
        UsageError: more than one is named, or no inputs are.
        DatasetError: an input is off, or no such review cites anything.
    """
    if len(items) > 1:
        raise UsageError("explain screening takes one review at a time.")
    corpus = read_corpus(settings)
    graph = Graph(corpus, settings.max_paper_degree)
    account = account_of(corpus, graph, settings, *items)
    return Told(text=page(account, plain=settings.ascii), json=_json(account))


def _json(account: Account) -> dict[str, Any]:
    return {
        **asdict(account.statistics),
        "title": account.title,
        "included": [
            {"paper": paper, "title": title} for paper, title in account.included
        ],
        "related": [asdict(each) for each in account.related],
        "removed": {
            "included": account.statistics.n_related_papers
            - account.statistics.n_candidates,
            "no_abstract": account.without_abstract,
            "known_exclusions": account.known_left_out,
        },
        "candidates": [asdict(each) for each in account.candidates],
        "seed": account.seed,
        "draw": {
            each.kind: {
                "pool": each.pool,
                "wanted": each.wanted,
                "drawn": [asdict(lot) for lot in each.lots],
            }
            for each in account.drawn
        },
        "dropped": account.dropped or None,
    }
