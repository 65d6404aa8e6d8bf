"""An extraction scored against truth that somebody has made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.metrics import MatchCounts, prf, ratio, string_ratio
from jobs.review_benchmark.extracting.result.extraction import Extraction
from jobs.review_benchmark.matching.listed import Listed
from jobs.review_benchmark.matching.match import Rules, matched, wanted
from jobs.review_benchmark.matching.normal import Normal, pmid_of
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review, TruthPaper
from runner.scorecard import Metric

FIELDS = ("title", "question", "conclusion")
"""Fields of a review that are compared as texts."""


def found(
    papers: Sequence[TruthPaper], among: Sequence[TruthPaper], rules: Rules
) -> tuple[TruthPaper | None, ...]:
    """The paper among others that each one matches, by the rules of a run."""
    pool = Listed.of(
        (
            Record(document=str(place), pmid=own.pmid, doi=own.doi, title=own.title)
            for place, own in enumerate(among)
        ),
        rules.normal,
        cutoff=rules.title_cutoff,
        autojunk=rules.autojunk,
    )
    sought = [wanted(own, rules.normal) for own in papers]
    hits = matched(sought, [pool] * len(sought), rules, range(len(among))).hits
    return tuple(None if hit is None else among[hit.place] for hit in hits)


def against_metrics(own: Extraction, truth: Review, rules: Rules) -> Iterator[Metric]:
    """Recall and precision of studies, accuracy of identifiers, likeness of texts."""
    papers = [each.paper for each in own.included.kept]
    pairs = [
        (each, hit)
        for each, hit in zip(
            truth.studies, found(truth.studies, papers, rules), strict=True
        )
        if hit is not None
    ]
    hits, n = len(pairs), len(truth.studies)
    yield Metric(
        path="studies.recall",
        value=prf(MatchCounts(tp=hits, fp=0, fn=n - hits)).recall,
        n=n,
        definition="recall@1(truth papers that were extracted; matching as a run's)",
    )
    missed = sum(hit is None for hit in found(papers, truth.studies, rules))
    yield Metric(
        path="studies.precision",
        value=prf(MatchCounts(tp=len(papers) - missed, fp=missed, fn=0)).precision,
        n=len(papers),
        definition="precision@1(extracted papers that match a truth paper)",
    )
    normal = Normal()
    values = {
        "pmid": [(pmid_of(a.pmid), pmid_of(b.pmid)) for a, b in pairs],
        "doi": [(normal.doi(a.doi), normal.doi(b.doi)) for a, b in pairs],
    }
    for name, ids in values.items():
        given = [pair for pair in ids if pair[0]]
        equal = sum(first == second for first, second in given)
        yield Metric(
            path=f"identifiers.{name}",
            value=ratio(equal, len(given)),
            n=len(given),
            definition=f"accuracy@1({name} of matched papers whose truth has one)",
        )
    review = own.review
    for name in FIELDS:
        wanted = normal.title(getattr(truth, name))
        read = "" if review is None else normal.title(getattr(review, name))
        yield Metric(
            path=f"similarity.{name}",
            value=string_ratio(wanted, read) if wanted else None,
            n=1,
            definition="string_ratio@1(Indel; lower case, without marks)",
        )
