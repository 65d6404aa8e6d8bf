"""Values of a JSON file one at a time, however it is read in pieces."""

from __future__ import annotations

import json
from io import BytesIO
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import DatasetError
from runner.imports import json_stream
from runner.imports.json_stream import ELEMENT, first_keys, values_in

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
PATHS = [("head",), ("rows", ELEMENT), ("deep", "rows", ELEMENT)]


def read(data: bytes) -> list[tuple[tuple[str, ...], Any]]:
    found = values_in(BytesIO(data), "x.json", PATHS)
    return [(value.path, json.loads(value.raw)) for value in found]


DOCUMENTS = st.fixed_dictionaries(
    {
        "rest": VALUES,
        "head": VALUES,
        "deep": st.fixed_dictionaries(
            {"a": VALUES, "rows": st.lists(VALUES, max_size=3), "b": VALUES}
        ),
        "rows": st.lists(VALUES, max_size=5),
        "last": VALUES,
    }
)
LAYOUTS = st.fixed_dictionaries(
    {"indent": st.none() | st.integers(0, 2), "ensure_ascii": st.booleans()}
)


@settings(max_examples=60)
@given(document=DOCUMENTS, layout=LAYOUTS, chunk=st.integers(1, 40))
def test_the_chosen_values_come_out_whatever_is_read_at_once(
    document: dict[str, Any], layout: dict[str, Any], chunk: int
) -> None:
    expected = [
        (("head",), document["head"]),
        *((("deep", "rows", ELEMENT), value) for value in document["deep"]["rows"]),
        *((("rows", ELEMENT), value) for value in document["rows"]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        values = read(json.dumps(document, **layout).encode())
    # of one path in file order
    assert sorted(values, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))


def test_a_file_that_is_cut_anywhere_ends_in_one_sentence() -> None:
    whole = json.dumps(
        {"head": {"a": 1}, "rows": [{"b": 'x"]'}, [2]]}, indent=1
    ).encode()
    assert len(read(whole)) == 3
    for size in range(1, len(whole)):
        with pytest.raises(DatasetError, match=r"^x\.json line \d+: ") as caught:
            read(whole[:size])
        assert str(caught.value).endswith("(export the file again).")


@pytest.mark.parametrize(
    "text", ['{"rows" [1]}', '{"rows": [1 2]}', "{rows: 1}", '{"rows": ,}']
)
def test_what_is_no_json_between_values_is_named(text: str) -> None:
    with pytest.raises(DatasetError, match=r"x\.json line 1: "):
        read(text.encode())


def test_the_keys_of_the_first_object_are_read_from_the_head_alone() -> None:
    assert first_keys(BytesIO(b'[{"a": [{"b": 1}], "c": "d'), "x") == ["[]", "a", "c"]
    assert first_keys(BytesIO(b'{"a": 1}\n{"b": 2}'), "x") == ["a"]
    assert first_keys(BytesIO(b"a,b\n1,2"), "x") == []
