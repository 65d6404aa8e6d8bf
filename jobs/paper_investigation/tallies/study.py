"""Study parameters field by field: is it the p-value or the significance that fails?

Questions with a swapped-in variant, drug or phenotype ask about an association that the
paper does not report. A model that names a p-value there has invented it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.tallies.measure import Measure, rate

STUDY = "study_param"
"""Where the paths of these metrics begin."""

NOT_FOUND = "not found"
OTHERWISE = "otherwise"
SIGNIFICANCES = ("yes", "no", "not stated", NOT_FOUND, OTHERWISE)
"""What can be expected and answered; the last for every other text, or none."""

MODIFIED = "modified_"
"""The beginning of the question types that ask about something swapped in."""


@dataclass(slots=True, kw_only=True)
class Fields:
    """Answers of one question type, field by field."""

    answered: int = 0
    p_value: int = 0  #: right ones, as the next two
    significance: int = 0
    both: int = 0
    read: int = 0  #: replies that could be read
    not_found: int = 0  #: of them, those whose p-value is "not found"


class Study:
    """The study-parameter answers of one model."""

    def __init__(self) -> None:
        self.types: dict[str, Fields] = defaultdict(Fields)
        self.all = Fields()
        self.significances: Counter[tuple[str, str]] = Counter()
        """Answers by the expected and the stated significance."""

    def add(self, paper: MarkedPaper) -> None:
        """Count the study-parameter answers of one paper in one replicate."""
        for marked in paper.questions:
            question, judgement = marked.item.question, marked.judgement
            if question.is_mcq or judgement is None:
                continue
            pair = (question.expected_significance, judgement.significance or "")
            expected, stated = map(_significance, pair)
            self.significances[expected, stated] += 1
            for fields in (self.types[question.question_type], self.all):
                fields.answered += 1
                fields.p_value += judgement.p_value_right
                fields.significance += judgement.significance_right
                fields.both += judgement.right
                fields.read += not judgement.failed
                p_value = (judgement.p_value or "").strip().lower()
                fields.not_found += p_value == NOT_FOUND

    def measures(self) -> Iterator[Measure]:
        """Accuracy by field, over all and by question type, and invented p-values."""
        if not self.all.answered:
            return
        yield from _by_field(STUDY, self.all)
        for name in sorted(filter(None, self.types)):
            fields = self.types[name]
            path = f"{STUDY}.{name}"
            yield from _by_field(path, fields)
            if name.startswith(MODIFIED):
                yield rate(
                    f"{path}.not_found",
                    fields.not_found,
                    fields.read,
                    "p-value 'not found' / readable answers",
                )
                yield rate(
                    f"{path}.invented",
                    fields.read - fields.not_found,
                    fields.read,
                    "p-value other than 'not found' / readable answers",
                )


def _significance(text: str) -> str:
    plain = text.strip().lower()
    return plain if plain in SIGNIFICANCES else OTHERWISE


def _by_field(path: str, fields: Fields) -> Iterator[Measure]:
    for name, right in (
        ("p_value", fields.p_value),
        ("significance", fields.significance),
        ("both", fields.both),
    ):
        yield rate(
            f"{path}.{name}.accuracy",
            right,
            fields.answered,
            right_of(name),
        )


def right_of(field: str) -> str:
    """What the accuracy of a field is."""
    return f"{field} right / answered"
