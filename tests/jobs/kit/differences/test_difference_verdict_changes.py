"""Verdicts of two scorings side by side."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.differences.difference import VerdictChange, verdict_changes
from store.verdicts import StoredVerdict, write_verdicts


def said(task: int, value: str, *, correct: bool | None = True) -> StoredVerdict:
    return StoredVerdict(
        task=task, value=value, expected="x", correct=correct, rule="any"
    )


def changes(
    before: list[StoredVerdict], after: list[StoredVerdict]
) -> list[VerdictChange]:
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("before.db", "after.db")]
        for file, verdicts in zip(files, (before, after), strict=True):
            write_verdicts(file, verdicts)
        return list(verdict_changes(*files))


def test_a_verdict_that_goes_shifts_none_of_those_behind_it() -> None:
    (only,) = changes(
        [said(1, "a"), said(1, "b"), said(1, "c")], [said(1, "b"), said(1, "c")]
    )
    assert (only.before, only.after) == (said(1, "a"), None)


def test_tasks_of_one_side_alone_are_changes_too() -> None:
    made = changes([said(1, "a"), said(2, "b")], [said(2, "b"), said(3, "c")])
    assert [(each.task, each.right) for each in made] == [(1, -1), (3, 1)]


def test_another_rule_with_the_same_outcome_is_no_change() -> None:
    other = StoredVerdict(task=1, value="a", expected="x", correct=True, rule="other")
    assert changes([said(1, "a")], [other]) == []


VERDICTS = st.lists(
    st.builds(
        said,
        st.integers(1, 4),
        st.sampled_from("ab"),
        correct=st.sampled_from([True, False, None]),
    ),
    max_size=8,
)


@settings(max_examples=25)
@given(VERDICTS, VERDICTS)
def test_changes_lead_from_one_side_to_the_other(
    before: list[StoredVerdict], after: list[StoredVerdict]
) -> None:
    found = Counter(before)
    for each in changes(before, after):
        if each.before is not None:
            found[each.before] -= 1
        if each.after is not None:
            found[each.after] += 1
    assert +found == Counter(after)
    assert min(found.values(), default=0) >= 0
