r"""Reads the references of a manuscript: which value stands where; pure.

Markdown and LaTeX are read as authors and pandoc leave them: with other white space,
values in bold or in math, escaped characters, thousands separated by `\,` or `{,}`.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jobs.kit.methods.markup import MACRO, SOURCE

Form: TypeAlias = Literal["markdown", "latex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Source that a text states for itself."""

    run: str
    scoring: int  #: 0: the run was not scored
    seq: int  #: the log's last event


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A reference in a manuscript."""

    line: int  #: from 1, of the value
    column: int  #: from 1
    name: str
    text: str | None  #: what stands there, as plain text; None: the mark is broken
    source: Source | None  #: the last one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Manuscript:
    """The references of a file, and what stands between them."""

    marks: tuple[Mark, ...]
    sources: tuple[Source, ...]
    rest: str  #: its text without the values of references


_NAME: Final = r"[A-Za-z0-9._+=/:@-]+"
_SOURCE: Final = re.compile(
    rf"{SOURCE}\s+run=({_NAME})\s+scoring=([0-9]{{1,9}})\s+seq=([0-9]{{1,18}})"
)
# pandoc writes comments as raw HTML in one of two ways
_OPENED: Final = re.compile(
    rf"`<!--\s*siftlog:({_NAME}?)\s*-->`\{{=html\}}|<!--\s*siftlog:({_NAME}?)\s*-->"
)
_CLOSED: Final = re.compile(r"`<!--\s*/siftlog\s*-->`\{=html\}|<!--\s*/siftlog\s*-->")
_MACRO: Final = re.compile(rf"\\{MACRO}(?![A-Za-z])\s*\{{([^{{}}]*)\}}\s*(?=(\{{)?)")
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")


_UNSEEN: Final = re.compile(
    rf"<!--.*?-->|\\{MACRO}\s*\{{[^{{}}]*\}}|"
    r"\\(?:begin|end|label|ref|cite\w*|usepackage|includegraphics)\b"
    r"(?:\[[^\]]*\])?(?:\{(?:[^{}]|\{[^{}]*\})*\})*",
    re.DOTALL,
)
"""Parts of a manuscript that readers do not see."""


def read_manuscript(text: str, form: Form) -> Manuscript:
    """Return the references of a text, in their order."""
    places = list(_in_latex(text) if form == "latex" else _in_markdown(text))
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    sources = [(match.start(), _source(match)) for match in _SOURCE.finditer(text)]
    marks, rest, at = [], [], 0
    for start, end, name, value in places:
        line = bisect_right(starts, start)
        before = [source for where, source in sources if where < start]
        marks.append(
            Mark(
                line=line,
                column=start - starts[line - 1] + 1,
                name=name,
                text=value,
                source=before[-1] if before else None,
            )
        )
        # a value leaves a character that is neither a digit nor a word
        rest.append(text[at:start] + "\ufffc")
        at = max(at, end)
    rest.append(text[at:])
    plain = _UNSEEN.sub("", "".join(rest))
    return Manuscript(
        marks=tuple(marks),
        sources=tuple(source for _, source in sources),
        rest=plain,
    )


def source_in(text: str) -> Source | None:
    """Return the first source that a text names; None: it names none."""
    match = _SOURCE.search(text)
    return None if match is None else _source(match)


def _source(match: re.Match[str]) -> Source:
    return Source(run=_decoded(match[1]), scoring=int(match[2]), seq=int(match[3]))


def _decoded(name: str) -> str:
    pieces = re.split(r"=([0-9A-F]{2})", name)
    raw = b"".join(
        bytes.fromhex(piece) if at % 2 else piece.encode()
        for at, piece in enumerate(pieces)
    )
    return raw.decode(errors="replace")


_Place: TypeAlias = tuple[int, int, str, str | None]
"""Start and end of a value, its name, and its plain text."""


def _in_markdown(text: str) -> Iterator[_Place]:
    openings = list(_OPENED.finditer(text))
    ends = [*(match.start() for match in openings[1:]), len(text)]
    for opening, next_start in zip(openings, ends, strict=False):
        name = opening[1] or opening[2]
        closing = _CLOSED.search(text, opening.end())
        if closing is None or closing.start() > next_start or not name:
            yield opening.start(), opening.end(), name or "", None
            continue
        value = text[opening.end() : closing.start()]
        yield opening.end(), closing.start(), name, plain_markdown(value)


def _in_latex(text: str) -> Iterator[_Place]:
    # comments keep their length, so that places stay
    code = _COMMENT.sub(lambda match: match[1].ljust(len(match[0])), text)
    for match in _MACRO.finditer(code):
        start = match.end() + 1
        end = _closing(code, start) if match[2] else None
        name = match[1].strip()
        if end is None or not name:
            yield match.start(), match.end(), name, None
            continue
        yield start, end, name, plain_latex(code[start:end])


def _closing(code: str, start: int) -> int | None:
    """Return where the brace closes that opened before *start*."""
    depth = 1
    for match in re.finditer(r"\\.|[{}]", code[start:], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return start + match.start()
    return None


# an underscore inside of a word is no emphasis
_MARKS: Final = re.compile(r"(?<!\\)[*`]+|(?<![\\\w])_+|(?<!\\)_+(?!\w)")


_ESCAPED: Final = re.compile(r"\\([ !-/:-@\[-`{-~])|&#?\w{1,31};")


def _markdown_token(match: re.Match[str]) -> str:
    return match[1] or html.unescape(match[0])


def plain_markdown(text: str) -> str:
    """Return what a reader of Markdown sees of a value."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return _spaced(_ESCAPED.sub(_markdown_token, _MARKS.sub("", text)))


_LATEX: Final[Mapping[str, str]] = {
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
    "textasciigrave": "`",
    "textdollar": "$",
    "textunderscore": "_",
    "textminus": "-",
    "thinspace": " ",
    "cdot": "·",
}
"""Characters by the name of their macro."""

_LATEX_TOKEN: Final = re.compile(
    r"\\([A-Za-z]+)\s*(?:\{\})?|\\(.)|([{}$])|(~)", re.DOTALL
)


def plain_latex(text: str) -> str:
    """Return what a reader of LaTeX sees of a value; unknown macros show nothing."""
    return _spaced(_LATEX_TOKEN.sub(_latex_token, text.replace("-{}-", "--")))


def _latex_token(match: re.Match[str]) -> str:
    if match[1] is not None:
        return _LATEX.get(match[1], "")
    if match[2] is not None:
        return " " if match[2] in ",;: !\n" else match[2]
    return " " if match[4] else ""


def _spaced(text: str) -> str:
    return " ".join(text.split())


_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d.,]*")
_SENTENCE: Final = re.compile(r"(?<=[.;])\s|\||&|\\\\|\n\s*\n")
"""Ends of sentences, of cells of tables, and of paragraphs."""


def unchecked_numbers(manuscript: Manuscript, words: Iterable[str]) -> int:
    """Count numbers without a reference in sentences that name one of *words*.

    Args:
        manuscript: the manuscript.
        words: names of metrics, as readers and files have them.
    """
    names = {word.lower() for word in words if len(word) > 3}  # noqa: PLR2004 - "n" is everywhere
    if not names:
        return 0
    longest_first = sorted(names, key=len, reverse=True)
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    return sum(
        len(_NUMBER.findall(sentence))
        for sentence in _SENTENCE.split(manuscript.rest)
        if named.search(sentence.lower())
    )
