"""Whether variants occur in the paper's text: a ceiling for recall, and inventions.

Grounding the truth says how much a model could have found; grounding a model's list
says how much of it the text does not hold. A paper's text is read once, for the truth
and all models together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import PaperTexts
from jobs.paper_investigation.grounding import ground
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.tallies.measure import Measure, rate
from jobs.paper_investigation.variants import VARIANT_CLASSES, VariantClass

TRUTH = ""
"""Stands in the place of a model for the curated variants."""


@dataclass(slots=True, kw_only=True)
class Judged:
    """Variants of one class that were looked for."""

    judged: int = 0
    grounded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """What was found."""

    verdicts: Mapping[str, Mapping[str, bool | None]]  #: paper -> folded variant
    classes: Mapping[str, Mapping[VariantClass, Judged]]  #: by model, or `TRUTH`

    def verdict(self, pmcid: str, variant: str) -> bool | None:
        """Whether *variant* stands in the text; None where that is not judged."""
        found = self.verdicts.get(pmcid, {})
        return found.get(naming.normalize(variant, "fold"))

    def ungrounded(self, model: str) -> int:
        """Predicted variants of *model* that the texts do not hold."""
        classes = self.classes.get(model, {}).values()
        return sum(own.judged - own.grounded for own in classes)

    def measures(self, model: str) -> Iterator[Measure]:
        """Grounded over judged, of the truth and of *model*'s lists, by class."""
        for name, key in (("truth", TRUTH), ("predicted", model)):
            classes = self.classes.get(key, {})
            for kind in VARIANT_CLASSES:
                if own := classes.get(kind):
                    yield rate(
                        f"grounding.{name}.{kind}",
                        own.grounded,
                        own.judged,
                        "in the text / judged variants of papers with text",
                    )


@dataclass(slots=True, kw_only=True)
class Gathering:
    """Variants to look for, gathered over all records."""

    texts: PaperTexts | None  #: None: nothing is looked up
    _variants: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)

    def add(self, paper: MarkedPaper) -> None:
        """Note the truth of one paper, once, and one model's list."""
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

    def looked_up(self) -> Grounding:
        """Read the texts, each once."""
        verdicts: dict[str, dict[str, bool | None]] = {}
        classes: dict[str, dict[VariantClass, Judged]] = {}
        for pmcid, seen in self._variants.items():
            verdicts[pmcid] = ground(self.texts.text(pmcid), seen) if self.texts else {}
            for variant, is_grounded in verdicts[pmcid].items():
                if is_grounded is None:
                    continue
                for who, n in seen[variant].items():
                    own = classes.setdefault(who, {}).setdefault(
                        naming.variant_class(variant), Judged()
                    )
                    own.judged += n
                    own.grounded += n * is_grounded
        return Grounding(verdicts=verdicts, classes=classes)


def _note(seen: dict[str, Counter[str]], who: str, spellings: Iterable[str]) -> None:
    for variant in naming.distinct(spellings, "fold"):
        seen.setdefault(variant, Counter())[who] += 1
