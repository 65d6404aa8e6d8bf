"""Defines the prompts of screening: wording, contents, and the schemas of replies.

The wording is in `prompts.toml`. Text from files is put between delimiters; that of the
paper is derived from the task. Labels, kinds, related reviews and counts are never
available to a prompt, and ids only on request.

A review is described by the first of these that exists: the file of criteria, the
sections of its abstract, its title. With `criteria_source=llm` the criteria that a
model stated come first.

The findings of a review reveal which papers it included. Therefore everything after the
first mention of results is dropped, only named sections are taken from the rest, and
each ends where studies are counted: a section that is too short is better than a leak.

All screening stages share one schema, since an endpoint may put it before the messages.
Fields are answered in the order of their declaration: each criterion, the reason, and
only then the decision. The docstrings of the schema's classes are sent too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from jobs.kit.chat import data_block
from jobs.screening.data import ArticleText, Criteria, Decision, ReasonCode, SetReview
from jobs.screening.input_tables import PICO
from jobs.screening.settings import ScreeningSettings, StageName
from runner.messages import TextPart
from runner.prompts import REASK, Placeholder, PromptBlock, PromptCatalog
from runner.structured import schema_of

_REVIEW: Final = Placeholder(
    name="review", meaning="criteria of the review, between delimiters", needed=True
)
_PAPER: Final = Placeholder(
    name="paper",
    meaning="the paper as far as the stage shows it, between delimiters",
    needed=True,
)
_REASON_CODES: Final = Placeholder(
    name="reason_codes", meaning="the codes of reasons, with commas between them"
)


def _screening(stage: str, text_kind: str) -> PromptBlock:
    return PromptBlock(
        name=stage,
        meaning=f"does a paper meet the review's criteria, by {text_kind}",
        parts={"system": (_REASON_CODES,), "user": (_REVIEW, _PAPER)},
    )


WORDING: Final = PromptCatalog(
    job="screening",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="criteria",
            meaning="what does a review ask for, by its own abstract "
            "(criteria_source=llm)",
            parts={"system": (), "user": (_REVIEW,)},
        ),
        _screening("title", "its title alone"),
        _screening("abstract", "its title and abstract"),
        _screening("fulltext", "its full text"),
        REASK,
    ),
)


OBJECTIVES = "Objectives"
SELECTION = "Selection criteria"
VISIBLE_HEADINGS = (OBJECTIVES, SELECTION)
"""Sections that state what a review searches for, and none of its findings."""

HEADINGS = (
    "Background",
    OBJECTIVES,
    "Search methods",
    "Search strategy",
    SELECTION,
    "Data collection and analysis",
    "Data collection & analysis",
)
"""Headings before the results, in this case or in capitals."""

_HEADING = re.compile(
    r"\b("
    + "|".join(
        re.escape(form) for heading in HEADINGS for form in (heading, heading.upper())
    )
    + r")\b(?:\s*:\s*|\s)"
)
_BY_CAPITALS = {heading.upper(): heading for heading in HEADINGS}
_ENDS = ".?!:;)]"
"""Characters after which a section may begin."""

# these words introduce results in any position and case
_RESULTS = re.compile(
    r"\b(?:main\s+results?|(?:author|reviewer)\W?s?\W?\s+conclusions?)\b", re.IGNORECASE
)
# these do only as the heading of a section
_RESULTS_HEADING = re.compile(
    r"\b(?i:results?|(?:main\s|key\s)?findings|conclusions?|summary)"
    r"(?:\s*:|\s+(?=[A-Z\d]))"
)

_SENTENCES = re.compile(r"(?<=[.?!])\s+")
_NUMBER = (
    r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:\W\w+)?|hundred)"
)
# not the phase or type of something, the duration of a study, its participants, or the
# number of things in it
_COUNTED = re.compile(
    rf"(?<!phase )(?<!type )\b{_NUMBER}"
    r"\s+(?!(?:types?|kinds?|weeks?|months?|years?|days?|participants|patients)\b)"
    r"(?:(?!(?:in|for|with|from|between|versus|or)\b)[\w()\u2010-]+\s+){0,4}"
    r"(?:trials|studies|RCTs|papers|articles|reports|publications|records)\b",
    re.IGNORECASE,
)
_INCLUSION_VERBS = re.compile(
    r"\b(?:includ|identif|found|met\b|fulfil|eligible|contribut|retriev|analys|pool)",
    re.IGNORECASE,
)


@lru_cache
def sections(abstract: str) -> Mapping[str, str]:
    """Return the sections that may be shown, by heading, without empty ones.

    Cached for some abstracts: each paper of a review needs the same.
    """
    before_results = _RESULTS.split(f"{abstract} ", maxsplit=1)[0]
    results = next(_beginning(_RESULTS_HEADING, before_results), None)
    if results is not None:
        before_results = before_results[: results.start()]
    headings = list(_beginning(_HEADING, before_results))
    ends = [*(heading.start() for heading in headings[1:]), len(before_results)]
    text_by_heading: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=False):
        name = _BY_CAPITALS[heading[1].upper()]
        text = _before_counts(before_results[heading.end() : end])
        if text and name not in text_by_heading:
            text_by_heading[name] = text
    return MappingProxyType(
        {
            name: text_by_heading[name]
            for name in VISIBLE_HEADINGS
            if name in text_by_heading
        }
    )


def _beginning(heading: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the headings at the start of *text* or a line, after a sentence or gap."""
    for match in heading.finditer(text):
        before = text[: match.start()]
        words = before.rstrip()
        gap = before[len(words) :]
        if not words or words[-1] in _ENDS or len(gap) > 1 or "\n" in gap:
            yield match


def _before_counts(text: str) -> str:
    """Return the sentences before one that states the number of studies."""
    sentences = takewhile(
        lambda sentence: not _counts(sentence), _SENTENCES.split(text)
    )
    return " ".join(" ".join(sentences).split())


def _counts(sentence: str) -> bool:
    return bool(_COUNTED.search(sentence) and _INCLUSION_VERBS.search(sentence))


CriteriaSource: TypeAlias = Literal["llm", "file", "sections", "title"]

LabelledLines: TypeAlias = tuple[tuple[str, str], ...]
"""Labels with their texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDescription:
    """The description of a review in a prompt."""

    source: CriteriaSource
    lines: LabelledLines


def describe_review(
    settings: ScreeningSettings, review: SetReview, context: str | None = None
) -> ReviewDescription:
    """Return the description of *review* for prompts.

    Args:
        settings: settings, which select the sources.
        review: its text, and its criteria from the file.
        context: context of a task that follows a model's criteria; see
            `criteria_to_context`.
    """
    if context is not None:
        return ReviewDescription(
            source="llm", lines=_lines(review.text, _criteria_from_context(context))
        )
    criteria = review.criteria
    if settings.criteria_source != "llm" and criteria and not criteria.is_empty:
        return ReviewDescription(source="file", lines=_lines(review.text, criteria))
    return describe_from_abstract(review)


def describe_from_abstract(review: SetReview) -> ReviewDescription:
    """Describe a review by the sections of its abstract, else by its title."""
    by_heading = sections(review.text.abstract)
    return ReviewDescription(
        source="sections" if by_heading else "title",
        lines=(*_title(review.text), *by_heading.items()),
    )


def criteria_to_context(criteria: Criteria) -> str:
    """Encode a model's criteria as the context of the tasks that follow."""
    return json.dumps(asdict(criteria), ensure_ascii=False)


def _criteria_from_context(context: str) -> Criteria:
    fields = json.loads(context)
    return Criteria(
        question=fields["question"],
        pico=fields["pico"],
        inclusion=tuple(fields["inclusion"]),
        exclusion=tuple(fields["exclusion"]),
    )


def _lines(text: ArticleText, criteria: Criteria) -> LabelledLines:
    return (*_title(text), *_criteria(criteria))


def _title(text: ArticleText) -> Iterator[tuple[str, str]]:
    if text.title:
        yield "Title", text.title


def _criteria(criteria: Criteria) -> Iterator[tuple[str, str]]:
    if criteria.question:
        yield "Question", criteria.question
    for name in PICO:
        if name in criteria.pico:
            yield name.capitalize(), criteria.pico[name]
    for criterion in criteria.inclusion:
        yield "Inclusion criterion", criterion
    for criterion in criteria.exclusion:
        yield "Exclusion criterion", criterion
    for heading, criterion in criteria.headings.items():
        yield f"Criterion ({heading})", criterion


def review_part(lines: LabelledLines, review: str = "") -> TextPart:
    """Return the part with the criteria of a review; a prompt cache may end after it.

    Args:
        lines: the description.
        review: its id; empty: hidden.
    """
    all_lines = (("Id", review), *lines) if review else lines
    return TextPart(text=data_block("review", _format_lines(all_lines)), cache=True)


def paper_part(
    stage: StageName,
    text: ArticleText,
    body: str,
    *,
    seed: str,
    id_: str,
    shows_year: bool = True,
) -> TextPart:
    """Return the part with one paper, limited to the text of its stage.

    Args:
        stage: selects the text.
        text: title, abstract and year.
        body: the full text, for its stage.
        seed: the task's key, from which the delimiters are derived.
        id_: the paper's; empty: hidden.
        shows_year: whether the year is shown.
    """
    lines = [("Id", id_)] if id_ else []
    lines.append(("Title", text.title or "(no title)"))
    if shows_year and text.year is not None:
        lines.append(("Year", str(text.year)))
    if stage == "abstract":
        lines.append(("Abstract", text.abstract or "(no abstract)"))
    paper_text = _format_lines(lines)
    if stage == "fulltext":
        # the last field, so that its line breaks are harmless
        paper_text = f"{paper_text}\nFull text: {body.strip()}"
    return TextPart(text=data_block("paper", paper_text, seed=seed))


def _format_lines(lines: LabelledLines | list[tuple[str, str]]) -> str:
    """Format a field per line: a line break in a file must not add a criterion."""
    return "\n".join([one_line(f"{label}: {text}") for label, text in lines])


_GAPS: Final = ("  ", *filter(str.isspace, map(chr, range(ord(" ")))))
"""What ASCII text may have between words instead of one blank."""


def one_line(text: str) -> str:
    """Return *text* with one blank between words; nearly always it has no others."""
    if _has_gap(text) or text.strip() != text:
        return " ".join(text.split())
    return text


def _has_gap(text: str) -> bool:
    if not text.isascii():
        # blanks other than the space, line breaks among them, are not printable
        return "  " in text or not text.isprintable()
    # a search for each is three times as fast as a look at every character
    for gap in _GAPS:  # noqa: SIM110 - a generator takes as long as the searches
        if gap in text:
            return True
    return False


class Met(BaseModel):
    """A criterion of the review, and whether the paper meets it."""

    criterion: str
    met: Literal["yes", "no", "unclear"]


class ScreeningReply(BaseModel):
    """Whether the paper meets all criteria; the reason has up to 300 characters."""

    criteria: list[Met] | None
    reason: str
    reason_code: ReasonCode
    decision: Decision
    p_include: Annotated[
        float,
        Field(ge=0, le=1, description="probability that the paper meets all criteria"),
    ]


class Pico(BaseModel):
    """Whom, what, against what and for which effect; empty where it is not said."""

    population: str
    intervention: str
    comparison: str
    outcome: str


class CriteriaReply(BaseModel):
    """What a review asks for."""

    question: str
    pico: Pico
    inclusion: list[str]
    exclusion: list[str]


SCREEN = schema_of(ScreeningReply, "screening")
CRITERIA = schema_of(CriteriaReply, "criteria")
