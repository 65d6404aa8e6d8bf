"""Holds a run's inputs: papers, curated values, and the rules of their scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from jobs.kit.grouping import grouped
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.curated_files import ClusterTable, SpaceGroupTable
from jobs.property_extraction.papers import PaperLibrary
from jobs.property_extraction.prompts import WORDING
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.tasks import NameQuestion
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from jobs.property_extraction.values.unit_reader import UnitTableRow
from runner.fingerprint import Input
from runner.prompts import PromptBook
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDataset:
    """All inputs of a run that extracts, or of an import."""

    settings: PropertySettings
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    papers: PaperLibrary = field(
        default_factory=PaperLibrary
    )  #: empty if none are named
    questions: Mapping[str, NameQuestion] = field(default_factory=dict)
    """By key, in the order of the candidates; empty unless names are verified."""
    truth: tuple[TruthRow, ...] = ()  #: in file order; blank values left out
    truth_blank: int = 0  #: number of rows without a value
    truth_papers: frozenset[str] = frozenset()
    """Papers that the truth names, also those with only blank values."""
    truth_names: frozenset[str] = frozenset()
    """Names of the whole truth, if `truth` is that of a sample of papers."""
    rubric: Rubric = field(default_factory=Rubric)
    clusters: ClusterTable = field(default_factory=dict)
    space_groups: SpaceGroupTable | None = None  #: None: the built-in table
    unit_table: tuple[UnitTableRow, ...] = ()
    aliases: AliasSet = field(default_factory=AliasSet)
    rules: tuple[Input, ...] = ()
    """Files that scoring depends on, with their hashes; papers are not among them."""
    findings: tuple[Finding, ...] = ()
    truth_by_paper: Mapping[str, tuple[int, ...]] = field(
        init=False, repr=False, compare=False
    )  #: indices of truth rows

    @property
    def has_truth(self) -> bool:
        """Whether there is truth to score predictions against."""
        return self.settings.truth is not None or bool(self.truth)

    @property
    def without_intervals(self) -> PropertyDataset:
        """The same inputs, measured without intervals.

        Without a truth, all papers with a reply are measured.
        """
        update = {"boot_b": 0} | ({} if self.has_truth else {"paper_set": "union"})
        return replace(self, settings=self.settings.model_copy(update=update))

    @property
    def canonical(self) -> frozenset[str]:
        """Names of truth and rubric, which need no alias."""
        return self.truth_names | canonical_names(self.truth, self.rubric)

    @property
    def listed_properties(self) -> tuple[Property, ...]:
        """Properties that an extraction's prompt lists, if it lists any.

        If the truth selects them, they are those of all its papers, in the order of the
        rubric, so that the list does not reveal which of them one paper has.
        """
        described = self.rubric.properties
        if self.settings.properties != "truth":
            return tuple(described.values())
        names = self.truth_names | {row.name for row in self.truth}
        return (
            *(prop for name, prop in described.items() if name in names),
            *(
                Property(name=name, kind=ComparisonKind.EXACT)
                for name in sorted(names - described.keys())
            ),
        )

    def __post_init__(self) -> None:
        indices = grouped((row.refno, index) for index, row in enumerate(self.truth))
        object.__setattr__(
            self,
            "truth_by_paper",
            {refno: tuple(indices[refno]) for refno in sorted(indices)},
        )


def canonical_names(truth: Iterable[TruthRow], rubric: Rubric) -> frozenset[str]:
    """Return the names of truth and rubric, which need no alias."""
    return frozenset({*rubric.properties, *(row.name for row in truth)})
