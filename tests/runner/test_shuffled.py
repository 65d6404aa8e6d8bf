"""A plan in an order of chance: all of it, always the same, documents together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.job import TaskSpec
from runner.plan import shuffled

KEYS = st.lists(
    st.from_regex(r"[a-z]{1,3}([/:#][a-z]{1,2})?", fullmatch=True), unique=True
)


def _specs(keys: list[str]) -> list[TaskSpec]:
    return [TaskSpec(stage="ask", key=key) for key in keys]


def _document(spec: TaskSpec) -> str:
    return spec.key.replace(":", "/").replace("#", "/").partition("/")[0]


@given(KEYS)
def test_nothing_is_lost_and_documents_stay_together_in_their_order(
    keys: list[str],
) -> None:
    specs = _specs(keys)
    found = shuffled(specs)
    assert sorted(spec.key for spec in found) == sorted(keys)
    documents = [_document(spec) for spec in found]
    for document in set(documents):
        own = [spec for spec in specs if _document(spec) == document]
        first = documents.index(document)
        assert found[first : first + len(own)] == own


@given(KEYS)
def test_the_order_of_documents_says_nothing_of_the_order_they_came_in(
    keys: list[str],
) -> None:
    def order(specs: list[TaskSpec]) -> list[str]:
        return list(dict.fromkeys(map(_document, shuffled(specs))))

    assert order(_specs(keys)) == order(_specs(keys[::-1]))


def test_a_sorted_list_does_not_stay_sorted() -> None:
    keys = [f"PMC{n}" for n in range(1000, 1100)]
    found = [spec.key for spec in shuffled(_specs(keys))]
    assert found != keys
    assert 20 < sum(key < "PMC1050" for key in found[50:]) < 30
