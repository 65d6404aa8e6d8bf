"""Answers offline as `baseline/lexical`, from the words of the request alone.

It is the lower bound of every experiment and the first run without key or network. It
sees the prompt only, costs nothing, and always gives the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobs.kit.chat import read_blocks
from jobs.kit.lexical import content_words
from jobs.screening.input_tables import PICO
from jobs.screening.prompts import OBJECTIVES, SELECTION
from runner.messages import ChatRequest

INCLUDE_FROM, EXCLUDE_BELOW = 0.5, 0.35
OVERLAP, DESIGN = 0.8, 0.2
"""Weights of the overlap and of the study design."""

_RANDOM = re.compile(r"\brandom", re.IGNORECASE)
_DESIGN = re.compile(r"\b(?:random|placebo|trial)", re.IGNORECASE)
_LINE = re.compile(r"([A-Z][^:\n]*): (.*)")
_QUESTION_LABELS = ("Question", OBJECTIVES, "Population", "Intervention")


def baseline(request: ChatRequest) -> str:
    """Return the reply to a prompt."""
    prompt = "".join(
        message.text for message in request.messages if message.role == "user"
    )
    blocks = dict(read_blocks(prompt))
    review = list(_lines(blocks.get("review", "")))
    paper = blocks.get("paper")
    answer = _criteria(review) if paper is None else _screened(review, paper)
    return json.dumps(answer, ensure_ascii=False)


def _criteria(review: Iterable[tuple[str, str]]) -> dict[str, Any]:
    fields = dict(review)
    return {
        "question": fields.get(OBJECTIVES, fields.get("Title", "")),
        "pico": dict.fromkeys(PICO, ""),
        "inclusion": [fields[SELECTION]] if SELECTION in fields else [],
        "exclusion": [],
    }


def _screened(review: list[tuple[str, str]], paper: str) -> dict[str, Any]:
    fields = dict(review)
    words = set(content_words(_read(paper)))
    question_words = set(
        content_words(" ".join(fields.get(label, "") for label in _QUESTION_LABELS))
    )
    overlap = _share(
        question_words
        or set(content_words(fields.get("Title", "")))
        or set(content_words(" ".join(text for _, text in review))),
        words,
    )
    if is_title_alone(paper):
        design, p = True, round(overlap, 2)
    else:
        criteria = " ".join(text for label, text in review if label != "Title")
        design = not _RANDOM.search(criteria) or bool(_DESIGN.search(paper))
        p = round(OVERLAP * overlap + DESIGN * design, 2)
    decision = _decision(p)
    return {
        "criteria": None,
        "reason": f"{round(100 * overlap)}% of the review's words occur.",
        "reason_code": "meets_criteria"
        if decision == "include"
        else _reason(fields, words, has_design=design),
        "decision": decision,
        "p_include": p,
    }


def _decision(p: float) -> str:
    if p >= INCLUDE_FROM:
        return "include"
    return "exclude" if p < EXCLUDE_BELOW else "unclear"


def _reason(fields: Mapping[str, str], words: set[str], *, has_design: bool) -> str:
    """Return "study_design" if no design is stated, else the label that overlaps least.

    Of two labels that overlap equally, the first is returned.
    """
    if not has_design:
        return "study_design"
    shares = {
        label.lower(): _share(set(content_words(fields[label])), words)
        for label in ("Population", "Intervention")
        if label in fields
    }
    return min(shares, key=shares.__getitem__) if shares else "other"


def is_title_alone(paper: str) -> bool:
    """Return whether a prompt shows only the title of a paper."""
    return not {"Abstract", "Full text"} & {label for label, _ in _lines(paper)}


def _read(paper: str) -> str:
    """Return the paper without the labels of its fields, its id and its year."""
    texts = [
        match[2] if (match := _LINE.fullmatch(line)) else line
        for line in paper.split("\n")
        if not line.startswith(("Id: ", "Year: "))
    ]
    return " ".join(texts)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match:
            yield match[1], match[2]


def _share(terms: set[str], words: set[str]) -> float:
    return len(terms & words) / len(terms) if terms else 0.0
