"""Building alias sets: seven rules, whatever people and models said."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet, Renaming
from jobs.property_extraction.aliases.building import (
    AliasEvidence,
    BuiltAliasSet,
    build_alias_set,
)
from jobs.property_extraction.name_pairs import NamePair, NameRuling
from jobs.property_extraction.settings import Clash
from runner.errors import DatasetError

TRUTH = frozenset({"T1", "T2", "T3"})


def accepted(
    name: str, target: str, refno: str | None = None, **more: object
) -> AliasEntry:
    return AliasEntry(
        pred_name=name,
        gt_name=target,
        refno=refno,
        status="accepted",
        source="human",
        **more,
    )


def rejected(name: str, target: str) -> AliasEntry:
    return AliasEntry(pred_name=name, gt_name=target, status="rejected", source="human")


def candidate(name: str, target: str, **known: object) -> NamePair:
    return NamePair(pred_name=name, gt_name=target, **known)


def yes(votes: int = 1) -> NameRuling:
    return NameRuling(is_match=True, votes=votes, models=("m",), reason="same")


def reviewed(*entries: AliasEntry, clash: Clash = "best") -> BuiltAliasSet:
    return build_alias_set(AliasEvidence(review=entries), canonical=TRUTH, clash=clash)


def pairs(built: BuiltAliasSet) -> list[tuple[str, ...]]:
    return [
        (entry.pred_name, entry.gt_name, *((entry.refno,) if entry.refno else ()))
        for entry in built.alias_set.accepted
    ]


def rules(built: BuiltAliasSet) -> list[str]:
    return [step.rule for step in built.steps]


def test_a_name_that_stands_for_itself_is_left_out_and_told() -> None:
    built = reviewed(accepted("a", "a"), accepted("b", "T1"))
    assert pairs(built) == [("b", "T1")]
    assert built.report[0] == "self: 'a' => 'a' removed: it has no effect"


def test_a_right_name_is_never_renamed_even_where_its_own_alias_was_dropped() -> None:
    built = build_alias_set(
        AliasEvidence(
            candidates=(candidate("T1", "T1"), candidate("T1", "T2", avg_sim=0.4)),
            drafts={"T1": "T1"},
            rulings={("T1", "T2"): yes()},
        ),
        canonical=TRUTH,
    )
    assert pairs(built) == []
    assert built.alias_set.id == "e3b0c44298fc"
    (entry,) = built.alias_set.entries
    assert (entry.status, entry.reason) == ("rejected", "canonical")


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"ruling": yes(3)}, {"ruling": yes(2), "value_hits": 9}),
        ({"value_hits": 2, "count": 1}, {"value_hits": 1, "count": 9}),
        ({"count": 3, "avg_sim": 0.1}, {"count": 2, "avg_sim": 0.9}),
        ({"avg_sim": 0.9}, {"avg_sim": 0.8}),
    ],
)
def test_of_rivals_the_one_wins_that_most_speaks_for(
    better: dict[str, object], worse: dict[str, object]
) -> None:
    for targets in (("T1", "T2"), ("T2", "T1")):
        known, rulings = [], {}
        for target, facts in zip(targets, (better, worse), strict=True):
            own = dict(facts)
            rulings["a", target] = own.pop("ruling", yes())
            known.append(candidate("a", target, **own))
        built = build_alias_set(
            AliasEvidence(candidates=tuple(known), rulings=rulings), canonical=TRUTH
        )
        assert pairs(built) == [("a", targets[0])]
        (loser,) = (e for e in built.alias_set.entries if e.gt_name == targets[1])
        assert (loser.status, loser.reason) == ("undecided", "clash")


def test_of_rivals_that_are_equal_the_lower_name_wins_and_a_person_over_votes() -> None:
    rulings = {("a", "T2"): yes(9), ("a", "T1"): yes(9)}
    assert pairs(build_alias_set(AliasEvidence(rulings=rulings), canonical=TRUTH)) == [
        ("a", "T1")
    ]
    chosen = AliasEvidence(rulings=rulings, review=(accepted("a", "T2"),))
    assert pairs(build_alias_set(chosen, canonical=TRUTH)) == [("a", "T2")]


def test_a_person_goes_before_votes_and_who_spoke_last_before_who_spoke_first() -> None:
    parent = AliasSet(entries=(accepted("a", "T2"),))
    voted = {("a", "T1"): yes(9)}
    earlier = build_alias_set(
        AliasEvidence(parent=parent, rulings=voted), canonical=TRUTH
    )
    assert pairs(earlier) == [("a", "T2")]
    later = AliasEvidence(parent=parent, rulings=voted, review=(accepted("a", "T3"),))
    assert pairs(build_alias_set(later, canonical=TRUTH)) == [("a", "T3")]


def test_a_clash_leaves_the_name_alone_or_makes_a_target_set_if_that_is_wanted() -> (
    None
):
    rivals = accepted("a", "T2"), accepted("a", "T1")
    assert pairs(reviewed(*rivals, clash="skip")) == []
    both = reviewed(*rivals, clash="set")
    renamed = Renaming.of(both.alias_set).renamed("P", "a")
    assert renamed.targets == ("T1", "T2")
    assert renamed.name == "T1"
    booked = renamed.entry("T2")
    assert booked is not None
    assert booked.gt_name == "T2"


def test_a_chain_of_any_depth_is_cut_short_and_its_path_told() -> None:
    names = [f"n{number:04}" for number in range(400)]
    entries = (accepted(*pair) for pair in itertools.pairwise(names))
    built = reviewed(*entries, accepted(names[-1], "T1"))
    assert {entry.gt_name for entry in built.alias_set.accepted} == {"T1"}
    first = built.alias_set.accepted[-2]
    assert first.reason == "'n0398' => 'n0399' => 'T1'"
    assert "transitive: 'n0398' => 'n0399' now 'n0398' => 'T1'" in "\n".join(
        built.report
    )


def test_a_chain_ends_at_a_right_name_that_has_an_alias_itself() -> None:
    built = reviewed(accepted("a", "T1"), accepted("T1", "T2"))
    assert pairs(built) == [("a", "T1")]


def test_a_chain_is_as_sure_as_its_weakest_part() -> None:
    built = build_alias_set(
        AliasEvidence(
            candidates=(candidate("b", "T1"),),
            drafts={"b": "T1"},
            review=(accepted("a", "b"),),
        ),
        canonical=TRUTH,
    )
    assert {entry.source for entry in built.alias_set.accepted} == {"draft"}


def test_a_chain_whose_ends_were_rejected_as_a_pair_does_not_act() -> None:
    built = reviewed(accepted("a", "b"), accepted("b", "T1"), rejected("a", "T1"))
    assert pairs(built) == [("b", "T1")]
    assert "rejected as a pair" in built.report[0]


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_names_that_stand_for_one_another_are_dropped_and_named(names: str) -> None:
    circle = [
        accepted(name, names[(at + 1) % len(names)]) for at, name in enumerate(names)
    ]
    built = reviewed(*circle, accepted("x", "T1"))
    assert pairs(built) == [("x", "T1")]
    assert rules(built) == ["cycle"] * len(names)
    assert all(f"{name!r}" in built.report[0] for name in names)


def test_a_chain_into_a_circle_ends_there_and_its_target_is_told_to_be_unknown() -> (
    None
):
    built = reviewed(
        accepted("x", "y"), accepted("y", "a"), accepted("a", "b"), accepted("b", "a")
    )
    assert pairs(built) == [("x", "a"), ("y", "a")]
    assert rules(built) == ["cycle", "cycle", "transitive", "target", "target"]


def test_a_target_set_keeps_what_is_no_part_of_a_circle() -> None:
    entries = accepted("a", "b"), accepted("b", "a"), accepted("a", "T1")
    assert pairs(reviewed(*entries, clash="set")) == [("a", "T1")]


def test_a_target_set_that_has_a_target_twice_keeps_the_direct_entry() -> None:
    built = reviewed(
        accepted("a", "z", reason="direct"),
        accepted("a", "b"),
        accepted("b", "z"),
        clash="set",
    )
    assert pairs(built) == [("a", "z"), ("b", "z")]
    assert built.alias_set.accepted[0].reason == "direct"


def test_what_a_dropped_circle_of_a_paper_uncovers_is_looked_at_again() -> None:
    built = reviewed(
        accepted("a", "c"),
        accepted("a", "b", "P1"),
        accepted("b", "a", "P1"),
        accepted("c", "a", "P1"),
    )
    assert pairs(built) == [("a", "c")]
    assert rules(built) == ["cycle"] * 3 + ["target"]


def test_an_unknown_target_is_kept_and_told_or_refused_if_that_is_wanted() -> None:
    evidence = AliasEvidence(review=(accepted("a", "nobody's"),))
    built = build_alias_set(evidence, canonical=TRUTH)
    (told,) = built.report
    assert told.startswith("target: 'a' => \"nobody's\" kept, though neither truth")
    with pytest.raises(DatasetError, match="nobody's"):
        build_alias_set(evidence, canonical=TRUTH, strict=True)


def test_what_is_said_of_a_paper_goes_before_what_is_said_of_all() -> None:
    built = reviewed(accepted("a", "T1"), accepted("a", "T2", "P1"))
    renaming = Renaming.of(built.alias_set)
    assert renaming.renamed("P1", "a").name == "T2"
    assert renaming.renamed("P2", "a").name == "T1"
    assert built.report == (
        "scope: 'a' => 'T2' in P1 takes precedence over 'T1' in that paper",
    )


def test_a_chain_over_an_alias_of_one_paper_is_cut_short_in_that_paper_alone() -> None:
    built = reviewed(accepted("a", "b"), accepted("b", "T1", "P1"))
    renaming = Renaming.of(built.alias_set)
    assert renaming.renamed("P1", "a").name == "T1"
    assert renaming.renamed("P2", "a").name == "b"


def test_people_are_believed_before_models_and_models_before_spelling() -> None:
    evidence = AliasEvidence(
        candidates=(candidate("a", "T1"), candidate("t2", "T2"), candidate("c", "T3")),
        rulings={
            ("a", "T1"): yes(),
            ("c", "T3"): NameRuling(
                is_match=None, votes=1, models=("m",), reason="1:1"
            ),
        },
        review=(rejected("a", "T1"),),
        drafts={"c": "T3", "t2": "T2"},
    )
    built = build_alias_set(evidence, canonical=TRUTH)
    said = {e.pred_name: (e.status, e.source) for e in built.alias_set.entries}
    assert said == {
        "a": ("rejected", "human"),
        "t2": ("accepted", "exact"),
        "c": ("undecided", "llm"),
    }


def test_decisions_of_the_parent_stand_until_there_are_newer_ones() -> None:
    parent = AliasSet(
        entries=(
            accepted("a", "T1"),
            AliasEntry(
                pred_name="b", gt_name="T1", status="accepted", source="llm", votes=1
            ),
            AliasEntry(pred_name="c", gt_name="T1", status="accepted", source="draft"),
        )
    )
    no = NameRuling(is_match=False, votes=0, models=("m",), reason="other")
    built = build_alias_set(
        AliasEvidence(parent=parent, rulings={("a", "T1"): no, ("b", "T1"): no}),
        canonical=TRUTH,
    )
    assert pairs(built) == [("a", "T1")]
    assert built.alias_set.parent == parent.id


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "T1", "T2", "T3"])
ENTRIES = st.builds(
    AliasEntry,
    pred_name=NAMES,
    gt_name=NAMES,
    refno=st.sampled_from([None, None, "P1", "P2"]),
    status=st.sampled_from(["accepted", "accepted", "accepted", "rejected"]),
    source=st.just("human"),
    votes=st.integers(0, 2),
)


@st.composite
def evidences(draw: st.DrawFn) -> AliasEvidence:
    entries = draw(st.lists(ENTRIES, max_size=14, unique_by=lambda entry: entry.key))
    earlier = draw(st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry.key))
    asked = draw(st.lists(st.tuples(NAMES, NAMES), max_size=6, unique=True))
    rulings = {
        pair: NameRuling(
            is_match=draw(st.sampled_from([True, False, None])),
            votes=draw(st.integers(0, 3)),
            models=(),
            reason="",
        )
        for pair in asked
    }
    return AliasEvidence(
        review=tuple(entries),
        parent=AliasSet(entries=tuple(earlier)) if earlier else None,
        rulings=rulings,
    )


@given(evidences(), st.sampled_from(["best", "skip", "set"]))
def test_whatever_was_decided_one_step_renames_for_good(
    evidence: AliasEvidence, clash: Clash
) -> None:
    built = build_alias_set(evidence, canonical=TRUTH, clash=clash)
    renaming = Renaming.of(built.alias_set)
    targets = defaultdict(set)
    for entry in built.alias_set.accepted:
        assert entry.pred_name not in TRUTH
        targets[entry.pred_name, entry.refno].add(entry.gt_name)
    if clash != "set":
        assert all(len(own) == 1 for own in targets.values())
    for refno in ("P1", "P2", "P3"):
        for name in "abcde":
            for target in renaming.renamed(refno, name).targets:
                assert renaming.renamed(refno, target).targets == (target,)
    keys = [entry.key for entry in built.alias_set.entries]
    assert len(keys) == len(set(keys))


@settings(max_examples=40)
@given(evidences(), st.randoms(use_true_random=False))
def test_the_order_of_what_was_said_changes_nothing(
    evidence: AliasEvidence, random: object
) -> None:
    review, rulings = list(evidence.review), list(evidence.rulings.items())
    random.shuffle(review)
    random.shuffle(rulings)
    shuffled = AliasEvidence(
        review=tuple(review), parent=evidence.parent, rulings=dict(rulings)
    )
    assert build_alias_set(shuffled, canonical=TRUTH) == build_alias_set(
        evidence, canonical=TRUTH
    )


@settings(max_examples=40)
@given(evidences())
def test_a_set_built_upon_itself_renames_alike(evidence: AliasEvidence) -> None:
    once = build_alias_set(evidence, canonical=TRUTH, clash="set").alias_set
    twice = build_alias_set(
        AliasEvidence(parent=once), canonical=TRUTH, clash="set"
    ).alias_set
    assert twice.id == once.id
