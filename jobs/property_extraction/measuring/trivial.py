"""What extraction comes to for whoever states one value of one property everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobs.measures import TrivialBaseline
from jobs.metrics import ratio
from jobs.property_extraction.measuring.rates import WORDS
from jobs.property_extraction.measuring.results import Results

KEY = "most_frequent"


def trivial(results: Results) -> Iterator[TrivialBaseline]:
    """The most frequent property with its most frequent value, in every paper."""
    truth = [
        results.dataset.truth[place]
        for refno in results.papers
        for place in results.dataset.truth_by_paper.get(refno, ())
    ]
    if not truth:
        return
    names = Counter(row.name for row in truth)
    name = min(names, key=lambda each: (-names[each], each))
    papers = {(row.refno, row.value, row.unit) for row in truth if row.name == name}
    values = Counter((value, unit) for _, value, unit in papers)
    best = min(values, key=lambda each: (-values[each], each))
    tp, stated = values[best], len(results.papers)
    found = {
        "precision": ratio(tp, stated),
        "recall": ratio(tp, len(truth)),
        "f1": ratio(2 * tp, stated + len(truth)),
    }
    for word in WORDS:
        yield TrivialBaseline(
            of=word,
            key=KEY,
            name=f"{name} = {' '.join(filter(None, best))} in every paper",
            value=found[word],
            n=stated,
            how="the most frequent property of the truth with its most frequent "
            "value, one row a paper, texts equal",
        )
