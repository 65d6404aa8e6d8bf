"""How far recomputed verdicts, recalls and scores agree with those an import brought.

What a file states is compared, never trusted. It is compared under the chosen profile
and under the other one, so that old results show which rules made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.marking.judging import Judgement
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.record import Fact
from jobs.paper_investigation.settings import Case

LISTED_DIFFERENCES = 10

NOT_READ = "parse_error"
"""What result files hold for a study-parameter field that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that comes out otherwise."""

    model: str
    where: str  #: the paper, or the question's key
    fact: str
    recorded: Fact
    recomputed: Fact


def paper_facts(paper: MarkedPaper) -> dict[str, Fact]:
    """What result files state about a paper, recomputed."""
    predicted = paper.predicted or {}
    return {
        "variant_recall": paper.recall,
        "paper_score": paper.score,
        "recall": paper.recall,
        "parse_failure": not paper.is_parsed,
        "predicted": sorted(predicted),
        "true_positives": sorted(paper.recalled),
        "false_negatives": sorted(set(paper.truth) - set(paper.recalled)),
    }


def question_facts(question: Question, judgement: Judgement) -> dict[str, Fact]:
    """What result files state about an answer, recomputed."""
    if question.is_mcq:
        return {"prediction_parsed": judgement.letter, "correct": judgement.right}
    failed = judgement.failed
    return {
        "response_p_value": NOT_READ if failed else judgement.p_value,
        "response_significance": NOT_READ if failed else judgement.significance,
        "p_value_correct": judgement.p_value_right,
        "significance_correct": judgement.significance_right,
        "both_correct": judgement.right,
        "correct": judgement.right,
    }


@dataclass(slots=True, kw_only=True)
class Tally:
    """Comparisons of one fact."""

    compared: int = 0
    agreeing: int = 0


class Agreement:
    """Comparisons under one profile; the first differences are kept."""

    def __init__(self, profile: str, case: Case) -> None:
        self.profile = profile
        self.facts: dict[str, Tally] = {}
        self.differences: list[Difference] = []
        self._case: Case = case

    def add(self, paper: MarkedPaper) -> None:
        """Compare one paper and its answers."""
        record = paper.record
        stated, made = record.recorded, paper_facts(paper)
        self._compare(record.model, record.pmcid, stated, made)
        for marked in (*paper.questions, *paper.aside):
            item, judgement = marked.item, marked.judgement
            if judgement is not None:
                made = question_facts(item.question, judgement)
                self._compare(record.model, item.key, item.recorded, made)

    def _compare(
        self,
        model: str,
        where: str,
        stated: Mapping[str, Fact],
        made: Mapping[str, Fact],
    ) -> None:
        for fact, recorded in stated.items():
            tally = self.facts.setdefault(fact, Tally())
            tally.compared += 1
            if self._comparable(recorded) == self._comparable(made[fact]):
                tally.agreeing += 1
            elif len(self.differences) < LISTED_DIFFERENCES:
                self.differences.append(
                    Difference(
                        model=model,
                        where=where,
                        fact=fact,
                        recorded=recorded,
                        recomputed=made[fact],
                    )
                )

    def _comparable(self, fact: Fact) -> Fact:
        """Lists of variants are compared as the profile compares variants."""
        if isinstance(fact, list):
            return sorted({naming.normalize(text, self._case) for text in fact})
        return fact

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Profile, fact, comparisons, agreements."""
        for fact, tally in self.facts.items():
            yield self.profile, fact, tally.compared, tally.agreeing
