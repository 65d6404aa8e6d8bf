"""How far recomputed verdicts, recalls and scores agree with those an import brought.

What a file states is compared, never trusted. It is compared under the chosen profile
and under the other one, so that old results show which rules made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.marking.paper import Marked, MarkedPaper
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


def question_facts(marked: Marked) -> dict[str, Fact]:
    """What result files state about an answer, recomputed."""
    judgement = marked.judgement
    if judgement is None:
        return {}
    if marked.item.question.is_mcq:
        return {"prediction_parsed": judgement.letter, "correct": judgement.right}
    return {
        "response_p_value": NOT_READ if judgement.failed else judgement.p_value,
        "response_significance": (
            NOT_READ if judgement.failed else judgement.significance
        ),
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
        self._compare(record.model, record.pmcid, record.recorded, paper_facts(paper))
        for marked in (*paper.questions, *paper.aside):
            self._compare(
                record.model,
                marked.item.key,
                marked.item.recorded,
                question_facts(marked),
            )

    def _compare(
        self,
        model: str,
        where: str,
        recorded: Mapping[str, Fact],
        recomputed: Mapping[str, Fact],
    ) -> None:
        for fact, stated in recorded.items():
            if fact not in recomputed:
                continue
            tally = self.facts.setdefault(fact, Tally())
            tally.compared += 1
            if self._comparable(stated) == self._comparable(recomputed[fact]):
                tally.agreeing += 1
            elif len(self.differences) < LISTED_DIFFERENCES:
                self.differences.append(
                    Difference(
                        model=model,
                        where=where,
                        fact=fact,
                        recorded=stated,
                        recomputed=recomputed[fact],
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
