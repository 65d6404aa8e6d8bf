"""Answers on their way into a log: what went in comes out, in memory or in a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli.import_ import AnswerSpool
from runner.job import ImportedAnswer, TaskSpec
from runner.plan import BLOCK

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
answers = st.builds(
    ImportedAnswer,
    spec=st.builds(
        TaskSpec,
        stage=texts,
        key=texts,
        skip=st.none() | texts,
        context=st.none() | texts,
        group=st.none() | texts,
    ),
    model=texts,
    replicate=st.integers(1, 9),
    text=st.none() | texts,
    finish_reason=texts,
    error=st.none() | texts,
    descends=st.booleans(),
)


@given(st.lists(answers))
def test_a_spool_gives_back_what_it_took_and_gives_it_again(
    given: list[ImportedAnswer],
) -> None:
    with AnswerSpool() as spool:
        assert list(spool.fill(given)) == given
        assert list(spool) == given
        assert list(spool) == given


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, 2 * BLOCK + 1])
def test_neither_blocks_nor_a_file_change_the_order(n: int, in_memory: int) -> None:
    given = [
        ImportedAnswer(
            spec=TaskSpec(stage="s", key=f"i{i}"), model="m", replicate=1, text="x" * i
        )
        for i in range(n)
    ]
    with AnswerSpool(in_memory) as spool:
        assert list(spool.fill(given)) == given
        assert list(spool) == given
