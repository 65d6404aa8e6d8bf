"""Prompts as data: placeholders, texts that hold for several blocks, files of users."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import DatasetError
from runner.messages import TextPart
from runner.prompts import Placeholder, PromptBlock, PromptBook, PromptCatalog, written

PAPER = Placeholder(name="paper", meaning="the paper, between marks", needed=True)
YEAR = Placeholder(name="year", meaning="of publication")
SHIPPED = """\
system = 'You read.'

[ask.one]
user = '{paper}One?'

[ask.two]
user = '{paper}Two, {"n": 2}?'

[sum]
system = 'You add.'
user = '{paper}{year}'
"""


@pytest.fixture
def catalog(tmp_path: Path) -> PromptCatalog:
    shipped = tmp_path / "shipped.toml"
    shipped.write_text(SHIPPED)
    return _catalog(shipped)


def _catalog(shipped: Path) -> PromptCatalog:
    parts = {"system": (), "user": (PAPER, YEAR)}
    names = ("ask.one", "ask.two", "sum")
    return PromptCatalog(
        job="atlas",
        file=shipped,
        blocks=tuple(
            PromptBlock(name=name, meaning=f"when {name}", parts=parts)
            for name in names
        ),
    )


def _file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "own.toml"
    file.write_text(text)
    return file


def test_a_text_holds_for_every_block_below_it(catalog: PromptCatalog) -> None:
    texts = catalog.shipped().texts
    assert texts["ask.one.system"] == texts["ask.two.system"] == "You read."
    assert texts["sum.system"] == "You add."


def test_a_file_replaces_what_it_names_and_nothing_else(
    catalog: PromptCatalog, tmp_path: Path
) -> None:
    own = _file(tmp_path, "[ask]\nsystem = 'Hm.'\n[ask.two]\nuser = '{paper}?'\n")
    before, after = catalog.shipped().texts, catalog.book(own).texts
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"ask.one.system", "ask.two.system", "ask.two.user"}
    # a text higher up replaces shipped ones that are written further down
    everywhere = catalog.book(_file(tmp_path, "system = 'All.'")).texts
    assert {everywhere[f"{b.name}.system"] for b in catalog.blocks} == {"All."}


def test_a_part_of_a_message_ends_after_a_value_that_is_one() -> None:
    book = PromptBook(texts={"a.system": "", "a.user": "Read {paper}\nOf {year}: {x}"})
    (user,) = book.messages(
        "a", paper=TextPart(text="P {year}", cache=True), year="1999", x="{paper}"
    )
    assert user.parts == (
        TextPart(text="Read P {year}", cache=True),
        TextPart(text="\nOf 1999: {paper}"),
    )
    with_system = PromptBook(texts={"a.system": "Be {kind}.", "a.user": "{paper}"})
    system, _ = with_system.messages("a", paper=TextPart(text="P"), kind="kind")
    assert (system.role, system.text) == ("system", "Be kind.")


def test_braces_of_json_stand_for_themselves(
    catalog: PromptCatalog, tmp_path: Path
) -> None:
    text = '{paper} {"n": [1, {}], "x": {"y": null}} {{paper}} { 1 } {} \\frac{1}{2}'
    book = catalog.book(_file(tmp_path, f"[sum]\nuser = '{text}'"))
    shown = book.text("sum.user", paper="P")
    assert shown == ('P {"n": [1, {}], "x": {"y": null}} {paper} { 1 } {} \\frac{1}{2}')


OTHER: Final = "which is not offered there;"
WRONG: Final = {
    "[ask.one]\nuser = '{papr}'": (
        f"prompt ask.one.user has the placeholder {{papr}}, {OTHER} the nearest is "
        "{paper} (write {{papr}} for the word in braces)."
    ),
    "[sum]\nsystem = 'Of { Year }.'": (
        f"prompt sum.system has the placeholder {{Year}}, {OTHER} it offers none "
        "(write {{Year}} for the word in braces)."
    ),
    "[ask]\nuser = '{year}'": (
        "prompt ask.user lacks the placeholder {paper}: the paper, between marks."
    ),
    "[ask.tow]\nuser = '{paper}'": (
        "atlas has no prompt ask.tow.user; the nearest is ask.two.user (siftlog "
        "prompts atlas prints the shipped ones)."
    ),
    "[sum]\nsystem = 3": "sum.system is not a text (put the text in quotes).",
    "": "there is no prompt in it; siftlog prompts atlas prints the shipped ones",
    "[sum\n": "is not a TOML file of prompts: ",
}
"""By the file's text: what its error says."""


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence(
    catalog: PromptCatalog, tmp_path: Path, text: str
) -> None:
    own = _file(tmp_path, text)
    with pytest.raises(DatasetError) as error:
        catalog.book(own)
    assert WRONG[text] in str(error.value)
    assert str(error.value).startswith(str(own))
    assert "\n" not in str(error.value)
    with pytest.raises(DatasetError, match="check the path"):
        catalog.book(tmp_path / "gone.toml")


TEXTS = st.text(
    st.one_of(
        st.sampled_from("'\"\\\n\t {}\r\x7f\x00\u200b=#[]"),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)


@given(st.lists(TEXTS, min_size=4, max_size=4), st.booleans())
def test_a_printed_file_reads_as_what_was_printed(
    tmp_path_factory: pytest.TempPathFactory, free: list[str], is_shared: bool
) -> None:
    folder = tmp_path_factory.mktemp("printed")
    (folder / "shipped.toml").write_text(SHIPPED)
    catalog = _catalog(folder / "shipped.toml")
    # what is no placeholder is written as one would have to write it
    texts = [text.replace("{", "(").replace("}", ")") for text in free]
    system = dict.fromkeys(("ask.one", "ask.two", "sum"), texts[0])
    if not is_shared:
        system["sum"] = texts[1]
    users = dict(zip(system, texts[1:], strict=True))
    book = PromptBook(
        texts={f"{name}.system": text for name, text in system.items()}
        | {f"{name}.user": f"{{paper}}{text}" for name, text in users.items()}
    )
    file = folder / "printed.toml"
    file.write_bytes(written(catalog, book).encode())
    assert catalog.read(file) == book.texts
    assert written(catalog, catalog.book(file)) == file.read_bytes().decode()
