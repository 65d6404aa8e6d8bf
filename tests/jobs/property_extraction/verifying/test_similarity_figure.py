"""The figure of a verification has each answered pair once, by verdict."""

from __future__ import annotations

from jobs.property_extraction.name_pairs import NamePair, NameVerdict, majority
from jobs.property_extraction.name_verification import NameVerification
from jobs.property_extraction.score_name_verification import VerificationFigures
from runner.scorecard import Stack


def verification(*pairs: tuple[float | None, bool | None]) -> NameVerification:
    names = [f"n{at}" for at, _ in enumerate(pairs)]
    return NameVerification(
        pairs=tuple(
            NamePair(pred_name=name, gt_name="t", avg_sim=similarity)
            for name, (similarity, _) in zip(names, pairs, strict=True)
        ),
        equal=frozenset(),
        verified_before=0,
        columns=(),
        rulings=majority(
            NameVerdict(pred_name=name, gt_name="t", is_match=said, model="m")
            for name, (_, said) in zip(names, pairs, strict=True)
        ),
        outcomes=(),
        missing=0,
        stale=0,
    )


def test_pairs_stand_in_the_bin_of_their_similarity() -> None:
    pairs = ((0.0, False), (0.99, True), (1.0, True), (0.95, False), (0.5, None))
    (figure,) = VerificationFigures(verification(*pairs, (None, True)))
    stacks = {m.label: m.values for m in figure.panels[0].marks if isinstance(m, Stack)}
    assert stacks["match"] == (0,) * 9 + (2,)
    assert stacks["no match"] == (1, *(0,) * 8, 1)
    assert stacks["undecided"] == (0,) * 5 + (1,) + (0,) * 4


def test_without_similarities_there_is_none() -> None:
    assert list(VerificationFigures(verification((None, True)))) == []
