"""Answers that need not be asked for twice."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from store.log.integrity import heads_path
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tui.sources.command import CommandAnswers, LogAt, log_at

LOGS = st.tuples(
    st.builds(
        LogAt,
        run_id=st.sampled_from(("a", "b")),
        file=st.tuples(st.just(1), st.integers(1, 2)),
        seq=st.integers(1, 2),
    )
)
ASKED = st.tuples(st.sampled_from(("score", "compare")))


@given(
    st.lists(st.tuples(ASKED, LOGS, st.booleans()), max_size=30),
    st.integers(1, 3),
)
def test_the_last_used_answers_are_kept_and_no_other_is_ever_given(
    steps: list[tuple[tuple[str, ...], tuple[LogAt], bool]], kept: int
) -> None:
    answers = CommandAnswers(kept)
    used: list[tuple[tuple[str, ...], tuple[LogAt]]] = []
    for asked, logs, is_put in steps:
        key = (asked, logs)
        if is_put:
            answers.put(asked, logs, [{"of": repr(key)}])
        expected = [{"of": repr(key)}] if is_put or key in used[-kept:] else None
        assert answers.get(list(asked), logs) == expected
        if expected is not None:
            used = [each for each in used if each != key] + [key]


def test_a_log_that_grew_or_was_exchanged_is_another_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written(folder.log, *COURSE[:3])
    before = log_at(folder)
    assert log_at(folder) == before
    folder.log.rename(tmp_path / "old.db")
    heads_path(folder.log).unlink()
    for left in tmp_path.glob("log.db-*"):
        left.unlink()
    written(folder.log, *COURSE[:4])
    after = log_at(folder)
    assert (after.run_id, after.file == before.file) == (tmp_path.name, False)
    assert after.seq > before.seq
