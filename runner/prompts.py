"""Loads prompts: named texts with placeholders, from a job or from a user's file.

A job declares a `PromptCatalog`: its blocks, the parts of each block, and the
placeholders that each part offers. The wording is in a TOML file next to the job. A
user's file has the same form and replaces any of the texts; a text at a higher level
applies to all blocks below it without their own in the same file.

A placeholder is a word in braces, such as `{paper}`; `{{paper}}` is the word in braces.
Other braces, as in JSON, are literal. Replaced text is not searched for placeholders
again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import tomli_w

from runner.errors import DatasetError
from runner.messages import Message, TextPart
from store.nearest import nearest

USUAL_PROFILE: Final = "siftlog"
"""The profile whose prompts are the shipped ones."""

_PLACEHOLDER: Final = re.compile(
    r"\{\{(?P<literal>[A-Za-z_][\w.-]*)\}\}|\{\s*(?P<name>[A-Za-z_][\w.-]*)\s*\}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A value that can be inserted into a prompt."""

    name: str
    meaning: str
    needed: bool = False  #: required: a text without it has no subject


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """The texts of one kind of request: a stage, or one of several forms of a stage."""

    name: str  #: dotted, the stage first, such as "question.choice"
    meaning: str  #: when it is sent
    parts: Mapping[str, tuple[Placeholder, ...]]
    """Placeholders of each part. `system` and `user` are messages; others are texts
    that the job inserts into them."""


REASK: Final = PromptBlock(
    name="reask",
    meaning="after a reply that could not be read and is shown again (reask)",
    parts={
        "user": (
            Placeholder(name="problem", meaning="what was wrong with it", needed=True),
        )
    },
)
"""The message of a re-ask, for jobs with the setting `reask`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBook:
    """A text for every part of every block of a job."""

    texts: Mapping[str, str]  #: by "block.part"

    def text(self, name: str, /, **values: str | TextPart) -> str:
        """Return one text with its placeholders replaced."""
        pieces = _pieces(self.texts[name])
        if len(pieces) == 1:
            return pieces[0][0]
        return "".join(
            [
                literal + (_text(values[placeholder]) if placeholder else "")
                for literal, placeholder in pieces
            ]
        )

    def parts(self, name: str, /, **values: str | TextPart) -> tuple[TextPart, ...]:
        """Return one text as parts of a message; each `TextPart` value ends one.

        Args:
            name: "block.part".
            values: values of the placeholders.
        """
        parts: list[TextPart] = []
        waiting = ""
        for literal, placeholder in _pieces(self.texts[name]):
            value = values[placeholder] if placeholder else ""
            if isinstance(value, TextPart):
                text = f"{waiting}{literal}{value.text}"
                parts.append(TextPart(text=text, cache=value.cache))
                waiting = ""
            else:
                waiting += f"{literal}{value}"
        return (*parts, TextPart(text=waiting)) if waiting or not parts else (*parts,)

    def messages(self, block: str, /, **values: str | TextPart) -> tuple[Message, ...]:
        """Return a whole prompt; without a system message if that text is empty."""
        system = self.text(f"{block}.system", **values)
        user = Message(role="user", parts=self.parts(f"{block}.user", **values))
        if not system:
            return (user,)
        return (Message(role="system", parts=(TextPart(text=system),)), user)

    def instructions(self) -> tuple[str, ...]:
        """Return all constant texts: the texts without placeholders."""
        literals = (
            "".join(literal for literal, _ in _pieces(text))
            for text in self.texts.values()
        )
        return tuple(dict.fromkeys(text for text in literals if text.strip()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromptCatalog:
    """The prompts of a job: its blocks, and the shipped wording."""

    job: str
    file: Path  #: the shipped wording
    blocks: tuple[PromptBlock, ...]
    profiles: Mapping[str, Path] = field(default_factory=dict)
    """Files that replace some of the texts, by profile."""

    def shipped(self, profile: str = USUAL_PROFILE) -> PromptBook:
        """Return the prompts of a profile."""
        return _shipped(self, profile)

    def book(self, file: Path | None, profile: str = USUAL_PROFILE) -> PromptBook:
        """Return the prompts of a run.

        Args:
            file: replaces any of the texts; None: the shipped ones.
            profile: its prompts are the defaults.

        Raises:
            DatasetError: the file is unreadable, or a text in it is invalid.
        """
        base = self.shipped(profile)
        if file is None:
            return base
        return PromptBook(texts={**base.texts, **self.read(file)})

    def read(self, file: Path) -> dict[str, str]:
        """Read the texts of a file by "block.part", each checked."""
        written = dict(_leaves(file, _decoded(file)))
        if not written:
            raise DatasetError(
                f"{file}: the file has no prompt; {self._hint} to start from."
            )
        texts: dict[str, str] = {}
        used: set[str] = set()
        for block in self.blocks:
            for part, placeholders in block.parts.items():
                key = _nearest_key(block.name, part, written)
                if key is not None:
                    used.add(key)
                    _check(file, key, written[key], placeholders)
                    texts[f"{block.name}.{part}"] = written[key]
        self._refuse_unknown(file, [name for name in written if name not in used])
        return texts

    def _refuse_unknown(self, file: Path, names: list[str]) -> None:
        known_keys = {
            key
            for block in self.blocks
            for part in block.parts
            for key in _candidate_keys(block.name, part)
        }
        for name in names:
            if name in known_keys:
                continue  # all blocks below it have their own texts
            near = nearest(name, sorted(known_keys), ratio=0.0)
            raise DatasetError(
                f"{file}: {self.job} has no prompt {name}; the nearest is {near[0]} "
                f"({self._hint})."
            )

    @property
    def _hint(self) -> str:
        return f"siftlog prompts {self.job} prints the shipped ones"


@cache
def _shipped(catalog: PromptCatalog, profile: str) -> PromptBook:
    texts = catalog.read(catalog.file)
    if profile in catalog.profiles:
        texts |= catalog.read(catalog.profiles[profile])
    return PromptBook(texts=texts)


def _decoded(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise DatasetError(f"{file}: {error.strerror} (check the path).") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DatasetError(
            f"{file} is not a TOML file of prompts: {error} (put a text "
            "of several lines between ''' and ''')."
        ) from error


def _leaves(
    file: Path, table: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the texts of nested tables by their dotted names."""
    for key, value in table.items():
        name = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            yield from _leaves(file, value, name)
        elif isinstance(value, str):
            yield name, value
        else:
            raise DatasetError(
                f"{file}: {name} is not a text (put the text in quotes)."
            )


def _candidate_keys(block: str, part: str) -> Iterator[str]:
    """Yield the possible keys of a part's text in a file, the closest first."""
    return (f"{above}.{part}" if above else part for above in _above(block))


def _nearest_key(block: str, part: str, written: Mapping[str, str]) -> str | None:
    return next((key for key in _candidate_keys(block, part) if key in written), None)


def _check(
    file: Path, name: str, text: str, placeholders: tuple[Placeholder, ...]
) -> None:
    """Refuse unknown placeholders and the lack of required ones."""
    offered = [placeholder.name for placeholder in placeholders]
    used_names = {placeholder for _, placeholder in _pieces(text) if placeholder}
    for word in used_names:
        if word in offered:
            continue
        near = nearest(word, offered, ratio=0.0)
        hint = f"the nearest is {{{near[0]}}}" if near else "it offers none"
        raise DatasetError(
            f"{file}: prompt {name} has the placeholder {{{word}}}, which is not "
            f"offered there; {hint} (write {{{{{word}}}}} for the word in braces)."
        )
    for placeholder in placeholders:
        if placeholder.needed and placeholder.name not in used_names:
            raise DatasetError(
                f"{file}: prompt {name} lacks the placeholder {{{placeholder.name}}}: "
                f"{placeholder.meaning}."
            )


def _text(value: str | TextPart) -> str:
    return value.text if isinstance(value, TextPart) else value


@lru_cache(maxsize=256)
def _pieces(text: str) -> tuple[tuple[str, str], ...]:
    """Split a text into pairs: literal text, and the placeholder after it, if any."""
    pieces: list[tuple[str, str]] = []
    waiting, at = "", 0
    for match in _PLACEHOLDER.finditer(text):
        waiting += text[at : match.start()]
        at = match.end()
        if match["literal"]:
            waiting += f"{{{match['literal']}}}"
        else:
            pieces.append((waiting, match["name"]))
            waiting = ""
    return (*pieces, (waiting + text[at:], ""))


def written(catalog: PromptCatalog, book: PromptBook) -> str:
    """Format a book as a file for `PromptCatalog.read`, with the placeholders.

    A text shared by all blocks under one name is written once.
    """
    lines = [
        f"# The prompts of {catalog.job} (siftlog run {catalog.job} --prompts FILE).",
        "# {word} is a placeholder, {{word}} the word in braces. A text that is left",
        "# out stays as shipped.",
    ]
    meanings = {block.name: block.meaning for block in catalog.blocks}
    for name, parts in tables(catalog, book).items():
        lines.append("")
        if name in meanings:
            lines.append(f"# {name}: {meanings[name]}")
        if name:
            lines.append(f"[{name}]")
        for part, (text, placeholders) in parts.items():
            lines += (
                f"# {{{placeholder.name}}}: {placeholder.meaning}"
                for placeholder in placeholders
            )
            lines.append(_assigned(part, text))
    return "\n".join(lines) + "\n"


Table: TypeAlias = dict[str, tuple[str, tuple[Placeholder, ...]]]
"""Text and placeholders by part."""


def tables(catalog: PromptCatalog, book: PromptBook) -> dict[str, Table]:
    """Return the tables of a file, each before those below it; "" is the top."""
    tables: dict[str, Table] = {}
    for block in catalog.blocks:
        for above in reversed([*_above(block.name)]):
            tables.setdefault(above, {})
        for part, placeholders in block.parts.items():
            text = book.texts[f"{block.name}.{part}"]
            table = _shared_table(catalog, book, block.name, part)
            tables[table].setdefault(part, (text, placeholders))
    return {name: table for name, table in tables.items() if table}


def _shared_table(
    catalog: PromptCatalog, book: PromptBook, block: str, part: str
) -> str:
    """Return the highest name under which all blocks share a part's text."""
    shared, text = block, book.texts[f"{block}.{part}"]
    for above in _above(block):
        below = [
            prompt_block.name
            for prompt_block in catalog.blocks
            if part in prompt_block.parts and above in _above(prompt_block.name)
        ]
        if any(book.texts[f"{name}.{part}"] != text for name in below):
            break
        if len(below) > 1:
            shared = above
    return shared


def _above(block: str) -> Iterator[str]:
    """Yield a block's name, the names above it, and "" for the top."""
    while block:
        yield block
        block = block.rpartition(".")[0]
    yield ""


def _assigned(part: str, text: str) -> str:
    """Format a text as TOML: as a literal if possible, else with escapes."""
    is_plain = all(c in "\n\t" or c.isprintable() for c in text)
    if not is_plain or "'''" in text or text.endswith("'"):
        return tomli_w.dumps({part: text}).rstrip("\n")
    if "\n" in text or "'" in text:
        return f"{part} = '''\n{text}'''"
    return f"{part} = '{text}'"
