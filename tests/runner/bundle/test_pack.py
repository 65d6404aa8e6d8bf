"""Keys are found wherever they stand in a file, also where a piece of it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.bundle.pack import keys, without_keys
from runner.errors import RunnerError

KEY = "sk-canary-7f3a9c51e8"


def test_keys_are_those_of_the_usual_names_and_those_that_the_run_names(
    tmp_path: Path,
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'api_key_env = "MINE"\n[models."m/x"]\napi_key_env = "OTHER"\n'
        "[settings]\ncount = 3\n"
    )
    given = {"MINE": KEY, "A_API_KEY": KEY, "HOME": KEY, "B_API_KEY": "two words"}
    assert list(keys(given, config)) == ["A_API_KEY", "MINE"]
    assert list(keys(given, tmp_path / "none.toml")) == ["A_API_KEY"]


@given(before=st.integers(0, 40), size=st.integers(1, 60))
def test_a_key_is_found_whatever_pieces_a_file_is_read_in(
    before: int, size: int
) -> None:
    data = b"." * before + KEY.encode() + b"." * 30
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    known = keys({"A_API_KEY": KEY}, Path("none"))
    with pytest.raises(RunnerError, match="x holds the key that A_API_KEY has here"):
        list(without_keys("x", pieces, known))


def test_placeholders_and_other_texts_pass_unchanged() -> None:
    known = keys({"A_API_KEY": "EMPTY", "B_API_KEY": KEY}, Path("none"))
    pieces = [b"EMPTY", b"sk-canary-", b"7f3a9c51e9"]
    assert list(without_keys("x", pieces, known)) == pieces
