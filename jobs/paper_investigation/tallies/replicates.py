"""Several replicates of the same work: how far does a model repeat itself?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

from jobs.metrics import mean, ratio, std
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.tallies.headline import Average
from jobs.paper_investigation.tallies.measure import Measure, rate
from jobs.paper_investigation.tallies.tally import Tally


def over_replicates(
    tallies: Sequence[Tally], repeats: Repeats, averages: Sequence[Average]
) -> Iterator[Measure]:
    """Every metric of each replicate, and how much they vary.

    Args:
        tallies: of one model, by replicate.
        repeats: of the same model.
        averages: whose spread is given.
    """
    for average in averages:
        values = [mean(tally.papers.values(average.value)) for tally in tallies]
        yield Measure(
            path=f"{average.path}~sd",
            value=std(values),
            n=len(values),
            n_defined=sum(value is not None for value in values),
            definition="std@1(of the replicates' averages, ddof=1)",
        )
    yield from repeats.measures()
    for replicate, tally in enumerate(tallies, start=1):
        for measure in tally.measures():
            path = f"replicate.{replicate}.{measure.path}"
            yield replace(measure, path=path, statistic=None)


class Repeats:
    """What one model said in each replicate: does it say the same again?"""

    def __init__(self, replicates: int) -> None:
        self._replicates = replicates
        self._answers: dict[str, list[bytes]] = {}
        self._predicted: dict[str, list[frozenset[str]]] = {}

    def add(self, paper: MarkedPaper) -> None:
        """Note one paper in one replicate."""
        if paper.predicted is not None:
            sets = self._predicted.setdefault(paper.record.pmcid, [])
            sets.append(frozenset(paper.predicted))
        for marked in paper.questions:
            if marked.judgement is not None:
                value = marked.judgement.value.encode()
                given = self._answers.setdefault(marked.item.key, [])
                given.append(blake2b(value, digest_size=8).digest())

    def measures(self) -> Iterator[Measure]:
        """Equal answers, and overlap of the predicted sets."""
        full = [g for g in self._answers.values() if len(g) == self._replicates]
        yield rate(
            "replicates.same_answers",
            sum(len(set(given)) == 1 for given in full),
            len(full),
            "questions with one answer in all replicates / answered in all",
        )
        overlaps = [
            _jaccard(sets[i], sets[j])
            for sets in self._predicted.values()
            for i in range(len(sets))
            for j in range(i)
        ]
        yield Measure(
            path="replicates.jaccard",
            value=mean(overlaps),
            n=len(overlaps),
            definition="mean@1(Jaccard index of two replicates' lists, over all twos)",
        )


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    shared = ratio(len(left & right), len(left | right))
    return 1.0 if shared is None else shared
