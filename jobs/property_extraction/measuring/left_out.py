"""What an absent extra leaves out, said wherever a number depends on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobs.property_extraction.measuring.fate import Fate
from jobs.property_extraction.measuring.results import Results
from jobs.text import plural
from runner.scorecard import LIMITS, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Properties that are in no count, and units that nothing can read."""

    properties: int = 0  #: of the rubric that no rule can compare
    is_chosen: bool = False  #: a setting leaves them out; else pymatgen is absent
    truth: int = 0  #: rows of such properties
    all_truth: int = 0
    predicted: Mapping[str, int] = field(default_factory=dict)
    """Rows of such properties by model, of the first replicate."""
    lacks_pint: bool = False  #: and units are to be converted

    @classmethod
    def of(cls, results: Results) -> LeftOut:
        """What the scoring goes without."""
        dataset, comparer = results.dataset, results.comparer
        rubric = dataset.rubric
        return cls(
            properties=sum(
                comparer.left_out(own.kind) for own in rubric.properties.values()
            ),
            is_chosen=dataset.settings.pymatgen == "leave_out",
            truth=sum(
                comparer.left_out(rubric.kind(row.name)) for row in dataset.truth
            ),
            all_truth=len(dataset.truth),
            predicted={
                model: column.first.fates.fates.count(Fate.LEFT_OUT)
                for model, column in results.columns.items()
            },
            lacks_pint=dataset.settings.units == "convert" and not comparer.has_pint,
        )

    @property
    def why(self) -> str:
        """Why compositions are not compared."""
        return "pymatgen=leave_out" if self.is_chosen else "pymatgen is not installed"

    @property
    def note(self) -> str:
        """The end of a caption; empty where nothing is lacking."""
        return "".join(f" {finding.message}" for finding in self.findings())

    def findings(self) -> Iterator[Finding]:
        """A sentence on each thing that is lacking."""
        if self.properties:
            predicted = sum(self.predicted.values())
            yield Finding(
                code="left_out",
                severity="info" if self.is_chosen else "warn",
                where=LIMITS,
                message=f"Left out of all counts: "
                f"{plural(self.properties, 'property', 'properties')} compared as "
                f"compositions ({self.why}), with {self.truth:,} of "
                f"{plural(self.all_truth, 'truth row')} and "
                f"{plural(predicted, 'predicted row')}.",
                n=self.truth + predicted,
            )
        if self.lacks_pint:
            yield Finding(
                code="no_pint",
                severity="warn",
                where=LIMITS,
                message="Units that only pint can read (it is not installed) are "
                "unknown, and their numbers are compared as they are.",
            )
