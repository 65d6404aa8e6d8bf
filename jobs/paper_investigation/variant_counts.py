"""Counts extracted variants by class and kind, and those found in the text.

Precision is a lower bound: the truth lists the variants with an annotated association,
not all variants that a study genotyped.

Grounding the truth measures what a model could have found; grounding a model's list
measures the part of it that is not in the text. A paper's text is read once, for the
truth and all models together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from jobs.kit.measurements import MeasuredValue, Measurement, count, share
from jobs.kit.measures import ComputedMeasure, ValueMeasure, measured
from jobs.kit.metrics import Ratio, ratio
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.data import PaperTexts
from jobs.paper_investigation.grading import GradedPaper
from jobs.paper_investigation.paper_scores import (
    UNPARSED,
    mean_of_values,
    mean_over_papers,
)
from jobs.paper_investigation.variants import (
    VARIANT_CLASSES,
    VARIANT_KINDS,
    VariantClass,
    VariantKind,
    ground,
    variant_class,
    variant_kind,
)
from runner.evaluation import STAYS

SIZES: Mapping[str, range] = {
    "1": range(1, 2),
    "2-3": range(2, 4),
    "4-7": range(4, 8),
    "8+": range(8, 1 << 31),
}
"""Groups of papers by number of truth variants."""


@dataclass(slots=True, kw_only=True)
class VariantHits:
    """Counts of variants of one class."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    fn_unparsed: int = 0  #: truth of papers with an unparsed extraction
    fn_unparsed_raw: int = 0  #: the same, counting repeats


@dataclass(slots=True, kw_only=True)
class KindRecall:
    """Truth variants of one paper by kind, summed over its replicates."""

    recalled: Counter[VariantKind] = field(default_factory=Counter, metadata=STAYS)
    truth: Counter[VariantKind] = field(default_factory=Counter, metadata=STAYS)

    @property
    def recall_of_others(self) -> float | None:
        """Recall without reference alleles; undefined if there are no others."""
        return ratio(
            self.recalled.total() - self.recalled["reference_allele"],
            self.truth.total() - self.truth["reference_allele"],
        )


@dataclass(slots=True, kw_only=True)
class ExtractionCounts:
    """Counts of the extracted variants of one model."""

    classes: dict[VariantClass, VariantHits] = field(
        default_factory=lambda: {n: VariantHits() for n in VARIANT_CLASSES},
        metadata=STAYS,
    )
    parsed: int = 0
    unparsed: int = 0
    _kinds: dict[str, KindRecall] = field(default_factory=dict)  #: by paper
    _sizes: dict[str, list[tuple[float, float | None]]] = field(
        default_factory=lambda: {n: [] for n in SIZES}, metadata=STAYS
    )

    def add(self, paper: GradedPaper) -> None:
        """Add the variants of one paper in one replicate."""
        if paper.predicted is None:
            if paper.skip == UNPARSED:
                self._add_unparsed(paper)
            return
        self.parsed += 1
        kinds = self._kinds.setdefault(paper.record.pmcid, KindRecall())
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

    def _add_unparsed(self, paper: GradedPaper) -> None:
        self.unparsed += 1
        for variant in paper.truth:
            self.classes[variant_class(variant)].fn_unparsed += 1
        for variant in paper.record.truth:
            self.classes[variant_class(variant)].fn_unparsed_raw += 1

    def total(self) -> VariantHits:
        """Return the sum of all classes."""
        every = self.classes.values()
        return VariantHits(
            tp=sum(hits.tp for hits in every),
            fp=sum(hits.fp for hits in every),
            fn=sum(hits.fn for hits in every),
            fn_unparsed=sum(hits.fn_unparsed for hits in every),
            fn_unparsed_raw=sum(hits.fn_unparsed_raw for hits in every),
        )

    def measures(self, papers: Sequence[str]) -> Iterator[Measurement]:
        """Yield the metrics of each class and kind, and by number of variants.

        Args:
            papers: the clusters of the intervals.
        """
        for name, hits in self.classes.items():
            if hits != VariantHits():
                yield from measured(HITS, hits, path=f"class.{name}.")
        total, path = self.total(), "class.MICRO-AVG."
        yield from measured(HITS, total, path=path)
        if self.unparsed:
            yield from measured(FAILURES_AS_FN, total, path=path)
        yield from self._by_kind(papers)
        for size, scores in self._sizes.items():
            if scores:
                yield from measured(BY_SIZE, scores, path=f"truth_size.{size}.")

    def _by_kind(self, papers: Sequence[str]) -> Iterator[Measurement]:
        every = self._kinds.values()
        clusters = [self._kinds.get(pmcid, KindRecall()) for pmcid in papers]
        for kind, words in VARIANT_KINDS.items():
            truth = sum(recall.truth[kind] for recall in every)
            if truth:
                recalled = sum(recall.recalled[kind] for recall in every)
                by_paper = Ratio(
                    [recall.recalled[kind] for recall in clusters],
                    [recall.truth[kind] for recall in clusters],
                )
                yield KIND_RECALL.measurement(
                    "kind.{kind}.recall",
                    replace(share(recalled, truth), statistic=by_paper),
                    text=kind,
                    parameters={"variants": words},
                )
        if any(recall.truth["reference_allele"] for recall in every):
            recalls = [recall.recall_of_others for recall in clusters]
            yield WITHOUT_REFERENCE.measurement(
                "avg_variant_recall~without_reference_alleles",
                mean_of_values(recalls, is_drawn=True),
            )


HITS: Mapping[str, ValueMeasure[VariantHits]] = {
    "tp": ValueMeasure(
        "True positives, {class}",
        "Known variants {of} that the model lists",
        "higher",
        of=lambda hits: count(hits.tp),
        definition="count@1(truth variants listed)",
    ),
    "fp": ValueMeasure(
        "False positives, {class}",
        "Listed variants {of} that are not in the truth",
        "lower",
        of=lambda hits: count(hits.fp),
        definition="count@1(listed variants that are not truth)",
    ),
    "fn": ValueMeasure(
        "False negatives, {class}",
        "Known variants {of} that the model does not list",
        "lower",
        of=lambda hits: count(hits.fn),
        definition="count@1(truth variants not listed)",
    ),
    "recall": ValueMeasure(
        "Recall, {class}",
        "Share of the known variants {of} that the model lists",
        "higher",
        of=lambda hits: share(hits.tp, hits.tp + hits.fn),
        definition="ratio@1(tp / (tp + fn))",
    ),
    "precision": ValueMeasure(
        "Precision, {class}",
        "Share of the listed variants {of} that are in the truth, a lower bound",
        "higher",
        of=lambda hits: share(hits.tp, hits.tp + hits.fp),
        definition="ratio@1(tp / (tp + fp), a lower bound)",
    ),
    "f1": ValueMeasure(
        "F1, {class}",
        "Harmonic mean of precision and recall of variants {of}",
        "higher",
        of=lambda hits: share(2 * hits.tp, 2 * hits.tp + hits.fp + hits.fn),
        definition="ratio@1(2 tp / (2 tp + fp + fn))",
    ),
}
"""Paths after `class.{class}.`; `{of}` is the class, or all classes."""

FAILURES_AS_FN: Mapping[str, ValueMeasure[VariantHits]] = {
    "recall~failures_as_fn": ValueMeasure(
        "unreadable lists as empty",
        "papers whose list could not be read count as papers with an empty list",
        of=lambda hits: share(hits.tp, hits.tp + hits.fn + hits.fn_unparsed),
        definition="ratio@1(tp / (tp + fn), unparsed papers' truth in fn)",
    )
}
"""With the words of its form."""

KIND_RECALL = ComputedMeasure(
    "Variant recall, {kind}",
    "Share of the known {kind} that the model lists",
    "higher",
    definition="ratio@1(recalled / truth, in parsed papers, of {variants})",
)
WITHOUT_REFERENCE = ComputedMeasure(
    "without reference alleles",
    "reference alleles such as *1 are left out",
    definition=mean_over_papers("|R|/|T|, without reference alleles"),
)
"""With the words of its form."""

SizeScores: TypeAlias = Sequence[tuple[float, float | None]]
"""Recall and score of papers with a number of truth variants."""

BY_SIZE: Mapping[str, ValueMeasure[SizeScores]] = {
    "recall": ValueMeasure(
        "Variant recall, papers with {size} known variants",
        "Mean variant recall of the papers with {size} known variants",
        "higher",
        of=lambda scores: mean_of_values([recall for recall, _ in scores]),
        definition="mean@1(over papers with that many truth variants)",
    ),
    "score": ValueMeasure(
        "Paper score, papers with {size} known variants",
        "Mean score of the papers with {size} known variants",
        "higher",
        of=lambda scores: mean_of_values([score for _, score in scores]),
        definition="mean@1(over papers with that many truth variants)",
    ),
}
"""Paths after `truth_size.{size}.`."""


TRUTH = ""
"""Key of the curated variants among the models."""


@dataclass(slots=True, kw_only=True)
class GroundedCounts:
    """Counts of variants of one class that were searched."""

    judged: int = 0
    grounded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """Results of the search of variants in texts."""

    verdicts: Mapping[str, Mapping[str, bool | None]]  #: paper -> folded variant
    classes: Mapping[
        str, Mapping[VariantClass, GroundedCounts]
    ]  #: by model, or `TRUTH`

    def verdict(self, pmcid: str, variant: str) -> bool | None:
        """Return whether *variant* is in the text; None if it cannot be searched."""
        verdicts = self.verdicts.get(pmcid, {})
        return verdicts.get(naming.normalize(variant, "fold"))

    def ungrounded(self, model: str) -> int:
        """Return the number of *model*'s predicted variants not in the texts."""
        classes = self.classes.get(model, {}).values()
        return sum(counts.judged - counts.grounded for counts in classes)

    def measures(self, model: str) -> Iterator[Measurement]:
        """Yield shares found in the text, of truth and *model*'s lists, by class."""
        for side, key in (("truth", TRUTH), ("predicted", model)):
            classes = self.classes.get(key, {})
            yield from measured(GROUNDED, classes, path=f"grounding.{side}.")


def _grounded_shares(
    classes: Mapping[VariantClass, GroundedCounts],
) -> dict[str, MeasuredValue]:
    return {
        name: share(classes[name].grounded, classes[name].judged)
        for name in VARIANT_CLASSES
        if name in classes
    }


GROUNDED: Mapping[str, ValueMeasure[Mapping[VariantClass, GroundedCounts]]] = {
    "{class}": ValueMeasure(
        "In the text, {side} {class}",
        "Share of the {side} {class} that occur in the paper's text",
        of=_grounded_shares,
        definition="ratio@1(in the text / judged variants of papers with text)",
    )
}
"""Paths after `grounding.{side}.`."""


@dataclass(slots=True, kw_only=True)
class GroundingCollector:
    """Variants to search for, collected over all records."""

    texts: PaperTexts | None  #: None: no search
    _variants: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)

    def add(self, paper: GradedPaper) -> None:
        """Add the truth of one paper, once, and one model's list."""
        record = paper.record
        if (
            self.texts is None
            or record.mode == "questions"
            or record.pmcid not in self.texts
        ):
            return
        seen = self._variants.get(record.pmcid)
        if seen is None:
            seen = self._variants[record.pmcid] = {}
            _note(seen, TRUTH, record.truth)
        if paper.predicted is not None:
            _note(seen, record.model, paper.predicted.values())

    def ground_all(self) -> Grounding:
        """Read and search each text once."""
        verdicts: dict[str, dict[str, bool | None]] = {}
        classes: dict[str, dict[VariantClass, GroundedCounts]] = {}
        for pmcid, seen in self._variants.items():
            verdicts[pmcid] = ground(self.texts.text(pmcid), seen) if self.texts else {}
            for variant, is_grounded in verdicts[pmcid].items():
                if is_grounded is None:
                    continue
                for source, n in seen[variant].items():
                    counts = classes.setdefault(source, {}).setdefault(
                        naming.variant_class(variant), GroundedCounts()
                    )
                    counts.judged += n
                    counts.grounded += n * is_grounded
        return Grounding(verdicts=verdicts, classes=classes)


def _note(seen: dict[str, Counter[str]], source: str, spellings: Iterable[str]) -> None:
    for variant in naming.distinct(spellings, "fold"):
        seen.setdefault(variant, Counter())[source] += 1
