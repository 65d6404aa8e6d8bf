"""Formats a certificate for a reviewer: guarantee, limits, assumptions.

Both pages depend only on the document, so a check can rebuild them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jobs.kit.report.html import element, facts_list, html_page
from jobs.stopping.certificate import SCHEMA
from store.document import floored

HTML: Final = "certificate.html"
MARKDOWN: Final = "certificate.md"

ASSUMPTIONS: Final = (
    (
        "Each random draw was uniform over the unread records, and was "
        "recorded before its record was shown. The draws follow from the seed of the "
        "plan, and the check repeats them; the seed was not used to foresee them."
    ),
    (
        "The labels are right. The bound counts what people labelled include or "
        "unclear; it knows nothing of mistakes."
    ),
    "The library did not change. Its hashes are part of the plan and are checked.",
    (
        "Target and alpha were fixed before the first draw, and no other plan was "
        "tried: to screen again until one run stops early gives up the guarantee."
    ),
)
"""Assumptions of the guarantee; see `jobs.kit.metrics.recall_bound`."""

NOT_GUARANTEED: Final = (
    (
        "That the library holds all relevant records there are: a search that missed "
        "them is not seen here."
    ),
    (
        "That one particular screening reached the target: at most alpha of all "
        "screenings by this rule stop below it."
    ),
    "That the records found are the important ones: recall counts each record alike.",
)


def _conclusion(document: Mapping[str, Any]) -> str:
    target = _percent(document["target"])
    verdict = (
        f"with {_percent(1 - document['alpha'])} confidence, "
        f"{_percent_floor(document['recall_at_least'])} or more of the relevant "
        "records of this library were found"
    )
    if document["reached"]:
        return (
            f"Screening could stop: {verdict}, and the target was {target}. A "
            "screening by this rule stops below its target with a probability of at "
            f"most {_percent(document['alpha'])}, however the records were ranked."
        )
    return f"Screening could not stop yet: {verdict}, and the target is {target}."


def _percent(share: float) -> str:
    return f"{round(100 * share, 6):g} %"


def _percent_floor(share: float) -> str:
    return f"{math.floor(share * 1000 + 1e-9) / 10:g} %"


def _time(stamp: str) -> str:
    return f"{stamp[:10]} {stamp[11:19]} UTC"


def _facts(document: Mapping[str, Any]) -> dict[str, str]:
    labelled, records = document["labelled"], document["records"]
    saved = 1 - labelled / records if records else 0.0
    return {
        "question": document["plan"]["question"],
        "records in the library": f"{records:,}",
        "labelled by people": f"{labelled:,} ({_percent_floor(saved)} not read)",
        "relevant among them": f"{document['relevant_found']:,}",
        "relevant in the library": f"{document['relevant_at_most']:,} at most",
        "recall": f"{floored(document['recall_at_least'])} at least",
        "target": f"{document['target']:g}",
        "alpha": f"{document['alpha']:g}",
        "random draws": f"{document['draws_counted']:,} count in the bound",
        "labelled by": ", ".join(document["labelled_by"]) or "no one",
        "planned": f"{_time(document['planned_at'])} by {document['planned_by']}",
        "last label": _time(document["stopped_at"]),
    }


def _basis(document: Mapping[str, Any]) -> dict[str, str]:
    ranking, library = document["ranking"], document["library"]
    models = ", ".join(ranking["models"])
    by = {
        "model": f"probability of inclusion by {models}",
        "tfidf": "TF-IDF similarity to the question, then to labelled records",
        "random": "chance",
    }
    facts = {
        f"library {file['name']}": f"SHA-256 {file['sha256']}"
        for file in library["files"]
    }
    facts["without an abstract"] = f"{library['without_abstract']:,} records"
    facts["ranked by"] = by[ranking["order"]]
    facts["run"] = (
        f"{document['run']}, {ranking['run_events']:,} events, "
        f"head {ranking['run_head']}"
    )
    if ranking["scoring"] is not None:
        facts["scoring"] = f"{ranking['scoring']}, digest {ranking['scoring_digest']}"
    facts["first ranked order"] = f"SHA-256 {ranking['order_sha256']}"
    facts["reading order"] = f"SHA-256 {document['reading_order_sha256']}"
    facts["seed of the draws"] = str(document["plan"]["seed"])
    for log in document["logs"]:
        facts[f"labels of {log['author']}"] = (
            f"{log['log']}, {log['events']:,} events, head {log['head']}"
        )
    code = document["code"]
    facts["code"] = f"siftlog {code['siftlog']}, SHA-256 {code['sha256']}"
    return facts


def _remarks(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield points for a reviewer to ask about."""
    if not document["reached"]:
        yield "The target is not reached: this page is an interim report."
    if document["plan"]["later"]:
        yield (
            f"{document['plan']['later']:,} later plans of this run are in the label "
            "logs; the first one counts."
        )
    if document["draws_irregular"]:
        yield (
            f"{len(document['draws_irregular']):,} draws do not count: they are not "
            "the ones that the seed gives, or something was read before they were "
            "recorded."
        )
    waiting = len(document["draws"]) - document["draws_counted"]
    if waiting:
        yield f"{waiting:,} draws do not count yet: a label is missing."
    if document["disputed"]:
        yield (
            f"People disagree on {len(document['disputed']):,} records; they count as "
            "not labelled."
        )


def _how_to_check() -> str:
    return (
        "The command siftlog verify certificate.json computes everything above again "
        "from the label events. Keep this folder together, and put the library's files "
        "next to it or leave it in the folder of its run."
    )


def pages(document: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the pages of a certificate, by file name."""
    return {
        HTML: _html(document).encode(),
        MARKDOWN: _markdown(document).encode(),
    }


def _title(document: Mapping[str, Any]) -> str:
    return f"Certificate {document['number']} of screening {document['run']}"


def _html(document: Mapping[str, Any]) -> str:
    header = (
        element("p", element("strong", _conclusion(document))),
        (element("p", one, class_="notice") for one in _remarks(document)),
    )
    sections = {
        "Result": (facts_list(_facts(document)),),
        "Assumptions": (element("ul", (element("li", one) for one in ASSUMPTIONS)),),
        "Not guaranteed": (
            element("ul", (element("li", one) for one in NOT_GUARANTEED)),
        ),
        "What it rests on": (facts_list(_basis(document)),),
        "Check": (element("p", _how_to_check()),),
    }
    return html_page(_title(document), header, sections, SCHEMA)


def _markdown(document: Mapping[str, Any]) -> str:
    def facts(of: Mapping[str, str]) -> Iterator[str]:
        yield from ("| | |", "|---|---|")
        yield from (f"| {_cell(name)} | {_cell(value)} |" for name, value in of.items())

    lines = [
        f"# {_cell(_title(document))}",
        "",
        _conclusion(document),
        "",
        *(f"> {one}\n" for one in _remarks(document)),
        *facts(_facts(document)),
        "",
        "## Assumptions",
        "",
        *(f"- {one}" for one in ASSUMPTIONS),
        "",
        "## Not guaranteed",
        "",
        *(f"- {one}" for one in NOT_GUARANTEED),
        "",
        "## What it rests on",
        "",
        *facts(_basis(document)),
        "",
        "## Check",
        "",
        _how_to_check(),
        "",
    ]
    return "\n".join(lines)


def _cell(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<")
    return " ".join(escaped.split())
