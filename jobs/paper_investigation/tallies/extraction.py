"""What extraction finds and misses, by class, kind and number of variants.

Precision is a lower bound: the truth lists the variants with an annotated association,
not all that a study genotyped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.metrics import Ratio, mean, mean_of, ratio
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.tallies.figures import UNPARSED
from jobs.paper_investigation.tallies.measure import (
    Measure,
    count,
    mean_over_papers,
    rate,
)
from jobs.paper_investigation.variants import (
    VARIANT_CLASSES,
    VARIANT_KINDS,
    VariantClass,
    VariantKind,
    variant_class,
    variant_kind,
)

SIZES: Mapping[str, range] = {
    "1": range(1, 2),
    "2-3": range(2, 4),
    "4-7": range(4, 8),
    "8+": range(8, 1 << 31),
}
"""Groups of papers by how many truth variants they have."""


@dataclass(slots=True, kw_only=True)
class Hits:
    """Variants of one class."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    fn_unparsed: int = 0  #: truth of papers whose extraction could not be read
    fn_unparsed_raw: int = 0  #: the same, repeats counted as often as they stand

    @property
    def recall(self) -> float | None:
        """Share of the truth that was listed."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def precision(self) -> float | None:
        """Share of the lists that is truth: a lower bound."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both."""
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


@dataclass(slots=True, kw_only=True)
class Kinds:
    """Truth variants of one paper by kind, summed over its replicates."""

    recalled: Counter[VariantKind] = field(default_factory=Counter)
    truth: Counter[VariantKind] = field(default_factory=Counter)

    @property
    def recall_of_others(self) -> float | None:
        """Recall of all but reference alleles; undefined where there are no others."""
        return ratio(
            self.recalled.total() - self.recalled["reference_allele"],
            self.truth.total() - self.truth["reference_allele"],
        )


class Extraction:
    """The extracted variants of one model."""

    def __init__(self) -> None:
        self.classes: dict[VariantClass, Hits] = {n: Hits() for n in VARIANT_CLASSES}
        self.parsed = 0
        self.unparsed = 0
        self._kinds: dict[str, Kinds] = {}  #: by paper
        self._sizes: dict[str, list[tuple[float, float | None]]] = {
            n: [] for n in SIZES
        }

    def add(self, paper: MarkedPaper) -> None:
        """Count the variants of one paper in one replicate."""
        if paper.predicted is None:
            if paper.skip == UNPARSED:
                self._add_unparsed(paper)
            return
        self.parsed += 1
        kinds = self._kinds.setdefault(paper.record.pmcid, Kinds())
        for variant in paper.truth:
            hits = self.classes[variant_class(variant)]
            kind = variant_kind(variant)
            kinds.truth[kind] += 1
            if variant in paper.predicted:
                kinds.recalled[kind] += 1
                hits.tp += 1
            else:
                hits.fn += 1
        for variant in paper.predicted:
            self.classes[variant_class(variant)].fp += variant not in paper.truth
        if paper.skip is None:
            for name, sizes in SIZES.items():
                if len(paper.truth) in sizes:
                    self._sizes[name].append((paper.recall or 0.0, paper.score))

    def _add_unparsed(self, paper: MarkedPaper) -> None:
        self.unparsed += 1
        for variant in paper.truth:
            self.classes[variant_class(variant)].fn_unparsed += 1
        for variant in paper.record.truth:
            self.classes[variant_class(variant)].fn_unparsed_raw += 1

    def total(self) -> Hits:
        """All classes together."""
        every = self.classes.values()
        return Hits(
            tp=sum(hits.tp for hits in every),
            fp=sum(hits.fp for hits in every),
            fn=sum(hits.fn for hits in every),
            fn_unparsed=sum(hits.fn_unparsed for hits in every),
            fn_unparsed_raw=sum(hits.fn_unparsed_raw for hits in every),
        )

    def measures(self, papers: Sequence[str]) -> Iterator[Measure]:
        """The figures of each class and kind that occurs, and by number of variants.

        Args:
            papers: the clusters of the intervals.
        """
        total = self.total()
        for name, hits in self.classes.items():
            if hits != Hits():
                yield from _measures(f"class.{name}", hits)
        yield from _measures("class.MICRO-AVG", total)
        if self.unparsed:
            yield rate(
                "class.MICRO-AVG.recall~failures_as_fn",
                total.tp,
                total.tp + total.fn + total.fn_unparsed,
                "tp / (tp + fn), unparsed papers' truth in fn",
            )
        yield from self._by_kind(papers)
        for size, own in self._sizes.items():
            if own:
                yield _by_size(f"truth_size.{size}.recall", [r for r, _ in own])
                yield _by_size(f"truth_size.{size}.score", [s for _, s in own])

    def _by_kind(self, papers: Sequence[str]) -> Iterator[Measure]:
        every = self._kinds.values()
        clusters = [self._kinds.get(pmcid, Kinds()) for pmcid in papers]
        for kind, words in VARIANT_KINDS.items():
            truth = sum(own.truth[kind] for own in every)
            if truth:
                yield rate(
                    f"kind.{kind}.recall",
                    sum(own.recalled[kind] for own in every),
                    truth,
                    f"recalled / truth, in parsed papers, of {words}",
                    Ratio(
                        [own.recalled[kind] for own in clusters],
                        [own.truth[kind] for own in clusters],
                    ),
                )
        if any(own.truth["reference_allele"] for own in every):
            recalls = [own.recall_of_others for own in clusters]
            yield Measure(
                path="avg_variant_recall~without_reference_alleles",
                value=mean(recalls),
                n=len(recalls),
                n_defined=sum(recall is not None for recall in recalls),
                definition=mean_over_papers("|R|/|T|, without reference alleles"),
                statistic=mean_of(recalls),
            )


def _measures(path: str, hits: Hits) -> Iterator[Measure]:
    yield count(f"{path}.tp", hits.tp, "truth variants listed")
    yield count(f"{path}.fp", hits.fp, "listed variants that are not truth")
    yield count(f"{path}.fn", hits.fn, "truth variants not listed")
    yield rate(f"{path}.recall", hits.tp, hits.tp + hits.fn, "tp / (tp + fn)")
    yield rate(
        f"{path}.precision", hits.tp, hits.tp + hits.fp, "tp / (tp + fp), a lower bound"
    )
    yield rate(
        f"{path}.f1",
        2 * hits.tp,
        2 * hits.tp + hits.fp + hits.fn,
        "2 tp / (2 tp + fp + fn)",
    )


def _by_size(path: str, values: list[float | None]) -> Measure:
    return Measure(
        path=path,
        value=mean(values),
        n=len(values),
        n_defined=sum(value is not None for value in values),
        definition="mean@1(over papers with that many truth variants)",
    )
