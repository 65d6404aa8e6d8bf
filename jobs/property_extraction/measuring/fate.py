"""What scoring made of each row of a model's predictions and of the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jobs.property_extraction.aliases.renaming import Renamed
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import Predicted, State
from jobs.property_extraction.row import Prediction, TruthRow


class Fate(StrEnum):
    """What a row counts as."""

    TP = "TP"
    FP = "FP"
    FN = "FN"
    ABSTAINED = "abstained"  #: the model says that there is no value
    LEFT_OUT = "left_out"  #: no rule is at hand for its property
    REPEATED = "repeated"  #: equal to an earlier one, where those count once
    UNGROUNDED = "ungrounded"  #: its quote stands less well in the paper than asked
    OUTSIDE = "outside"  #: its paper is not scored


COUNTED = (Fate.TP, Fate.FP, Fate.FN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """The rows of one replicate of a model, and those of the truth, in file order."""

    dataset: Dataset
    predicted: Predicted
    papers: tuple[str, ...]  #: that are scored, ascending
    renamed: Sequence[Renamed]  #: by prediction
    fates: Sequence[Fate]  #: by prediction
    partners: Sequence[int]  #: by prediction: the place of its truth row, or -1
    truth_fates: Sequence[Fate]  #: by truth row
    truth_partners: Sequence[int]  #: by truth row: the place of its prediction, or -1
    names: Sequence[str] = field(init=False, repr=False, compare=False)
    """By prediction: the name that it is booked on, its partner's if it has one."""

    def __post_init__(self) -> None:
        names = [
            own.name if partner < 0 else self.truth[partner].name
            for own, partner in zip(self.renamed, self.partners, strict=True)
        ]
        object.__setattr__(self, "names", names)

    @property
    def predictions(self) -> Sequence[Prediction]:
        """All of them, whatever they count as."""
        return self.predicted.predictions

    @property
    def truth(self) -> Sequence[TruthRow]:
        """All curated rows."""
        return self.dataset.truth

    @property
    def failed(self) -> Sequence[str]:
        """Papers whose extraction failed, ascending."""
        return sorted(
            refno
            for refno, outcome in self.predicted.outcomes.items()
            if outcome.state is State.FAILED
        )

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Places of predictions with those of their truth rows."""
        for place, partner in enumerate(self.partners):
            if partner >= 0:
                yield place, partner

    def tallies(self) -> Mapping[tuple[str, str], tuple[int, int, int]]:
        """TP, FP and FN by paper and name, ascending; groups without any left out."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, fate in enumerate(self.fates):
            if fate in COUNTED:
                key = (self.predictions[place].refno, self.names[place])
                found.setdefault(key, [0, 0, 0])[COUNTED.index(fate)] += 1
        for row, fate in zip(self.truth, self.truth_fates, strict=True):
            if fate is Fate.FN:
                found.setdefault((row.refno, row.name), [0, 0, 0])[2] += 1
        return {key: (own[0], own[1], own[2]) for key, own in sorted(found.items())}
