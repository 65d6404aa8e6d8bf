"""Item values made by hand or by chance, for tests of comparing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from jobs.kit.comparison.models import Side
from runner.scorecard import Comparable, ItemValues


def means(values: Mapping[str, float | None], **changes: Any) -> ItemValues:
    """A mean over items; the document of "p1/q2" is p1."""
    return ItemValues(
        **{
            "kind": "mean",
            "items": list(values),
            "clusters": [item.partition("/")[0] for item in values],
            "cluster": "paper",
            "first": list(values.values()),
            "definition": "mean@1(of a test)",
            **changes,
        }
    )


def pooled(
    values: Mapping[str, tuple[float | None, float | None]], **changes: Any
) -> ItemValues:
    """A ratio of sums, or labels and scores."""
    return means(
        {item: first for item, (first, _) in values.items()},
        **{
            "kind": "ratio",
            "second": [second for _, second in values.values()],
            **changes,
        },
    )


def side(
    comparable: Mapping[str, ItemValues], model: str = "m", number: int | None = None
) -> Side:
    made: Comparable = {
        path: (lambda given=values: given) for path, values in comparable.items()
    }
    return Side(run="r", number=number, model=model, comparable=made, seq=7)


ITEMS = st.builds(
    "{}/{}".format, st.sampled_from(("p1", "p2", "p3", "p10")), st.integers(1, 5)
)
VALUES = st.one_of(st.none(), st.sampled_from((0.0, 0.1, 0.2, 0.3, 1.0, 7.5)))
RIGHT = st.sampled_from((0.0, 1.0))

MEANS = st.dictionaries(ITEMS, VALUES).map(means)
VERDICTS = st.dictionaries(ITEMS, RIGHT).map(means)
RATIOS = st.dictionaries(
    ITEMS, st.tuples(VALUES, st.sampled_from((0.0, 1.0, 2.0, 5.0)))
).map(pooled)
ANY = st.one_of(MEANS, VERDICTS, RATIOS)


@st.composite
def areas(draw: st.DrawFn, kind: str) -> tuple[ItemValues, ItemValues]:
    """Two models' scores of the same labels, each with items of its own."""
    labels = draw(st.dictionaries(ITEMS, RIGHT))
    scores = st.sampled_from((0.0, 0.2, 0.2000001, 0.9))

    def one() -> ItemValues:
        own = draw(st.lists(st.sampled_from(sorted(labels)), unique=True))
        return pooled({item: (labels[item], draw(scores)) for item in own}, kind=kind)

    return (one(), one()) if labels else (means({}), means({}))
