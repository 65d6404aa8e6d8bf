"""Collects and measures the verdicts of each model on each pair of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from typing import assert_never

from jobs.kit.grouping import grouped
from jobs.kit.measurements import MeasuredValue, count, share
from jobs.kit.measures import ValueMeasure
from jobs.kit.metrics import Agreement, agreement, replicate_agreement
from jobs.kit.score import Judged
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.name_pairs import (
    HEURISTIC,
    NamePair,
    NameRuling,
    Names,
    NameVerdict,
    majority,
)
from jobs.property_extraction.parsing import ParsedChoice, ParsedVerdict
from jobs.property_extraction.plan import read_verdict
from jobs.property_extraction.tasks import AUTO, DONE, NameQuestion
from runner import scorecard
from runner.job import Answer, Answers
from runner.messages import ParseFailure

VERIFY_STAGE = "verify"

EQUAL = "Exact string match (auto-verified)"
"""Reason of a match without a request."""


def verdicts_of(dataset: PropertyDataset, answers: Answers) -> Iterator[NameVerdict]:
    """Yield the verdicts of every model and replicate, by task.

    An unparsed reply yields an undecided verdict for each of its pairs; open questions
    and those of former plans yield none.
    """
    for family in answers.families():
        for answer in family:
            question = dataset.questions.get(answer.task.key)
            if question is not None and answer.task.stage == VERIFY_STAGE:
                yield from verdicts_in(dataset, question, answer)


def verdicts_in(
    dataset: PropertyDataset, question: NameQuestion, answer: Answer
) -> Iterator[NameVerdict]:
    """Yield the verdicts of one answer on the pairs of its question."""
    if answer.skip == AUTO:
        for pair in question.pairs:
            yield _verdict(pair, HEURISTIC, is_match=True, reason=EQUAL)
    if answer.chat is None:
        return
    parsed = read_verdict(dataset, answer.task, answer.chat)
    for index, pair in enumerate(question.pairs):
        match parsed:
            case ParsedVerdict(is_match=is_match, reason=reason):
                decision: bool | None = is_match
            case ParsedChoice(target=chosen, reason=reason):
                decision = chosen == index
            case ParseFailure(reason=reason):
                decision = None
            case _:
                assert_never(parsed)
        yield _verdict(pair, answer.task.model, is_match=decision, reason=reason)


def _verdict(
    pair: NamePair, model: str, *, is_match: bool | None, reason: str
) -> NameVerdict:
    return NameVerdict(
        pred_name=pair.pred_name,
        gt_name=pair.gt_name,
        is_match=is_match,
        reason=reason,
        model=model,
    )


VERDICT_LABELS: Mapping[bool | None, str] = {
    True: "match",
    False: "no match",
    None: "undecided",
}
"""Verdicts in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRulings:
    """The verdicts and rulings of one model."""

    model: str
    verdicts: tuple[NameVerdict, ...]  #: of every replicate, by task
    rulings: Mapping[Names, NameRuling]  #: of answered pairs

    @property
    def unread(self) -> int:
        """Number of verdicts whose reply could not be parsed."""
        return sum(verdict.is_match is None for verdict in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameVerification:
    """The verdicts of a run on its pairs."""

    pairs: tuple[NamePair, ...]  #: in the order of the questions
    equal: frozenset[Names]  #: equal except for case; they need no request
    verified_before: int  #: pairs that already had a verdict
    columns: tuple[ModelRulings, ...]  #: in the run's order of models
    rulings: Mapping[Names, NameRuling]  #: of all models together
    outcomes: tuple[scorecard.Verdict, ...]  #: of each answer, for the monitor
    missing: int  #: number of due answers that are missing
    stale: int  #: number of answers that no question needs


def verification_of(dataset: PropertyDataset, answers: Answers) -> NameVerification:
    """Return the verdicts of a run, in one pass over its answers."""
    verdicts: dict[str, list[NameVerdict]] = {model: [] for model in answers.models}
    outcomes: list[scorecard.Verdict] = []
    ended = stale = 0
    for family in answers.families():
        for answer in family:
            question = dataset.questions.get(answer.task.key)
            if question is None or answer.task.stage != VERIFY_STAGE:
                stale += answer.reply is not None
                continue
            ended += not answer.is_open
            answer_verdicts = list(verdicts_in(dataset, question, answer))
            verdicts.setdefault(answer.task.model, []).extend(
                verdict for verdict in answer_verdicts if verdict.model != HEURISTIC
            )
            if answer_verdicts:
                outcomes.append(_outcome(answer, answer_verdicts))
    questions = dataset.questions.values()
    planned = len(questions) * len(answers.models) * answers.replicates
    return NameVerification(
        pairs=tuple(pair for question in questions for pair in question.pairs),
        equal=frozenset(
            pair.names
            for question in questions
            if question.skip == AUTO
            for pair in question.pairs
        ),
        verified_before=sum(
            len(question.pairs) for question in questions if question.skip == DONE
        ),
        columns=tuple(
            ModelRulings(model=model, verdicts=tuple(stated), rulings=majority(stated))
            for model, stated in verdicts.items()
        ),
        rulings=majority(chain.from_iterable(verdicts.values())),
        outcomes=tuple(outcomes),
        missing=0 if answers.imported else planned - ended,
        stale=stale,
    )


def _outcome(answer: Answer, verdicts: list[NameVerdict]) -> scorecard.Verdict:
    """Return the verdict on one answer: of a choice, its target."""
    unread = next(
        (verdict.reason for verdict in verdicts if verdict.is_match is None), ""
    )
    chosen = [verdict.gt_name for verdict in verdicts if verdict.is_match]
    if len(verdicts) == 1 or unread:
        value = VERDICT_LABELS[verdicts[0].is_match]
    else:
        value = chosen[0] if chosen else "none"
    judged = Judged(value=value, rule=unread or answer.skip or "verdict")
    return judged.verdict(answer.task)


HEADLINE = "match_rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPairs:
    """The pairs of a run, and one model's rulings on them."""

    verification: NameVerification
    column: ModelRulings

    def of_pairs(self, n: int) -> MeasuredValue:
        """Return a number out of all pairs."""
        return count(n, len(self.verification.pairs))

    @property
    def decisions(self) -> list[bool | None]:
        """Rulings on the answered pairs."""
        return [ruling.is_match for ruling in self.column.rulings.values()]

    @property
    def match_rate(self) -> MeasuredValue:
        """Share of matches among the decided pairs."""
        decided = [decision for decision in self.decisions if decision is not None]
        return share(sum(decided), len(decided))

    @property
    def agreement(self) -> MeasuredValue:
        """Agreement of replicates, by pair."""
        by_pair = grouped(
            (verdict.names, verdict.is_match)
            for verdict in self.column.verdicts
            if verdict.is_match is not None
        )
        pairwise = replicate_agreement(by_pair.values())
        return count(pairwise.mean_pairwise, pairwise.items)


VERIFICATION: Mapping[str, ValueMeasure[VerifiedPairs]] = {
    HEADLINE: ValueMeasure(
        "Match rate",
        "Share of the decided pairs of names that the model takes for one property",
        of=lambda verified: verified.match_rate,
        definition="match_rate@1(pairs called a match / pairs with a verdict; by "
        "majority of replicates)",
    ),
    "pairs": ValueMeasure(
        "Pairs",
        "Pairs of names that were asked about, or equal",
        of=lambda verified: verified.of_pairs(len(verified.verification.pairs)),
        definition="pairs@1(pairs that were asked about, or equal)",
    ),
    "matches": ValueMeasure(
        "Matches",
        "Pairs of names that are called a match",
        of=lambda verified: verified.of_pairs(verified.decisions.count(True)),
        definition="matches@1(pairs called a match)",
    ),
    "rejected": ValueMeasure(
        "Rejections",
        "Pairs of names that are called no match",
        of=lambda verified: verified.of_pairs(verified.decisions.count(False)),
        definition="rejected@1(pairs called no match)",
    ),
    "undecided": ValueMeasure(
        "Undecided pairs",
        "Pairs of names without a majority of verdicts",
        "lower",
        of=lambda verified: verified.of_pairs(verified.decisions.count(None)),
        definition="undecided@1(pairs with as many for as against, or none)",
    ),
    "auto_verified": ValueMeasure(
        "Equal names",
        "Pairs of names that are equal but for letter case",
        of=lambda verified: verified.of_pairs(len(verified.verification.equal)),
        definition="auto_verified@1(names equal but for case)",
    ),
    "unread": ValueMeasure(
        "Unreadable verdicts",
        "Verdicts whose reply could not be read",
        "lower",
        of=lambda verified: verified.of_pairs(verified.column.unread),
        definition="unread@1(verdicts whose reply could not be read)",
    ),
    "replicates_agree": ValueMeasure(
        "Agreement of replicates",
        "Share of equal verdicts over pairs of replicates, as a mean over pairs of "
        "names",
        "higher",
        of=lambda verified: verified.agreement,
        definition="replicates_agree@1(share of equal verdicts over pairs of "
        "replicates, mean over name pairs)",
    ),
}


def agreements(
    verification: NameVerification,
) -> Iterator[tuple[ModelRulings, ModelRulings, Agreement]]:
    """Yield the agreement of every two models on the pairs that both decided."""
    for first, second in combinations(verification.columns, 2):
        both = [
            (ruling.is_match, other.is_match)
            for pair, ruling in first.rulings.items()
            if (other := second.rulings.get(pair)) is not None
            and None not in {ruling.is_match, other.is_match}
        ]
        left, right = ([decisions[side] for decisions in both] for side in range(2))
        yield first, second, agreement(left, right, (False, True))
