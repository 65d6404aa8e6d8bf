"""Codes written reasons for exclusion by a heuristic of word patterns in three steps.

First come statements of a fault ("wrong comparator", "the population is not
appropriate"), of which the earliest in the text counts; then statements of a study
design that reviews leave out ("a cross-sectional study", "this is a meta-analysis");
then single words, the more specific ones first. A trial that is merely described as
randomised is therefore coded by its fault. Where codes matter, a mapping file or a
`reason_code` column overrides them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

from jobs.kit.inputs.cells import Filled, one_of
from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.screening.data import REASON_CODES, Exclusion

OTHER = "other"

_NOUNS: Mapping[str, str] = {
    "study_design": r"(?:study |trial )?designs?|(?:study|publication) types?"
    r"|types? of (?:study|article)|methodology|allocation",
    "population": r"(?:patient |study )?populations?|participants?|patients?|people"
    r"|subjects?|samples?|age(?: groups?)?|diagnos[ei]s|diagnostic criteria"
    r"|indications?|diseases?|disorders?|conditions?",
    "comparator": r"comparators?|comparisons?|controls?(?: groups?| arms?)?",
    "intervention": r"interventions?|exposures?|treatments?|therap(?:y|ies)|drugs?"
    r"|doses?|dosages?|regimens?|medications?",
    "outcome": r"outcomes?(?: measures?)?|endpoints?|end points?|follow-?ups?",
    "language": "languages?",
    "date": "dates?",
}
"""Nouns of a fault, by code."""

_FAULT = (
    r"wrong|incorrect|ineligible|inappropriate|unsuitable|irrelevant|inadequate"
    r"|no (?:eligible|relevant|appropriate|suitable|valid)"
    r"|(?:not|n't)(?: \w+)? (?:eligible|relevant|appropriate|correct|suitable"
    r"|applicable|valid|part of|of interest|of relevance|meet|fit|match|within|included"
    r"|considered|assessed|measured|reported|evaluated|studied)"
)
_SAME_CLAUSE = r"(?:[ ,()'\"/-]+[^ .;:]+){0,%d}?[ ,()'\"/-]+"
"""Text between a fault and its noun: a limited number of words in the same clause."""


_FAULTS = tuple(
    (code, pattern)
    for code, nouns in _NOUNS.items()
    for pattern in (
        rf"\b(?:{_FAULT}){_SAME_CLAUSE % 2}(?:{nouns})(?![\w-])",
        rf"\b(?:{nouns}){_SAME_CLAUSE % 8}(?:{_FAULT})\b",
    )
)
"""Patterns of a fault before its noun, and after it, by reason code."""

_LABELS: Mapping[str, str] = {
    "allocation": "study_design",
    "design": "study_design",
    "methods": "study_design",
    "participants": "population",
    "interventions": "intervention",
    "intervention": "intervention",
    "comparison": "comparator",
    "outcomes": "outcome",
    "outcome": "outcome",
}
_LABELLED = re.compile(rf"(?:^|[.;,] ?)({'|'.join(_LABELS)}) ?:")
"""A reason that lists the criteria in turn stops at the one that fails."""

_DESIGNS = (
    r"\bnot (?:\w+ ){0,3}?(?:\brcts?\b|randomi[sz]|trial|controlled|blind)"
    r"|\bnon-?randomi[sz]|quasi-?(?:randomi|rct|experiment)|\bnrct|\bcba\b"
    r"|no randomi[sz]ation|un-?controlled|un-?randomi[sz]|single.?(?:arm|group)"
    r"|histor\w+ controls?|meta-?analy|systematic review"
    r"|(?:^|\b(?:is|was|are) (?:an? )?)(?:[\w'/-]+ ){0,2}review\b"
    r"(?! (?:question|criteria|team|author))"
    r"|review (?:article|paper)|overview|cross-?sectional|observational|cohort"
    r"|retrospective|case[ -]?(?:control|series|stud|report)|longitudinal|qualitative"
    r"|(?:^|(?:is|was|were|are) an? )(?:[\w-]+ ){0,2}(?:survey|questionnaire)"
    r"|editorial|comment(?:ar|s?\b)|\bletters?\b|critique|opinion|discussion"
    r"|roundtable|news(?:letter| (?:article|item|report))|guideline|\bbook|thes[ie]s"
    r"|dissertation|(?:pre|before)[- ](?:and[- ])?(?:post|after)|time series|animal"
    r"|in vitro|\bmouse\b|\brats?\b|pharmacokinetic|economic"
    r"|cost-?(?:effect|analy|benefit)|model+ing"
    r"|(?:secondary|post.?hoc|sub-?group|pooled|re-?|further)[ -]?analys"
    r"|(?:primary|original|new) data|prevalence study|epidemiolog|descriptive"
    r"|validation study|feasibility|diagnostic (?:accuracy|study)"
    r"|not a (?:\w+ )?(?:trial|study)\b|study (?:design|type)|description of"
    r"|laboratory|phase (?:i|1)\b|extension|errat|corrigend"
)
"""Designs and kinds of publication that reviews of trials leave out."""

_NO_INFORMATION = (
    r"insufficient|not enough"
    r"|(?:no|lack of|missing|unclear|incomplete|limited) (?:\w+ )?"
    r"(?:data|information|results|details)"
    r"|data (?:could |were |was |are |is )?(?:not|un)"
    r"|unable to (?:obtain|contact|extract|retrieve|locate|find)"
    r"|(?:could|can)(?: ?not|n't) be (?:obtained|retrieved|located|extracted|found)"
    r"|full.?text|poster|abstract only|only (?:an |the )?abstract|conference"
    r"|unpublished|not available|unavailable|no response|not found"
)

_INTERVENTION = (
    r"intervention|exposure|\bdos(?:e|age|ing)|treatment|treated|therap|surg|technique"
    r"|drug|medication|regimen|combination|administ|inject|vaccin|supplement|device"
    r"|program|training|procedure|adjunct|concomitant|duration"
)

_POPULATION = (
    r"population|participants?|patients?|diagnos|\baged?\b|child|adult|infant|neonat"
    r"|newborn|pregnan|women|\bmen\b|elderly|healthy|volunteer|subjects?\b|indication"
    r"|disease|disorder|illness|comorbid|people|students?\b"
)

_ONGOING = (
    r"ongoing|protocol only|^(?:\w+ )?protocol\b|not yet (?:published|complete)"
    r"|terminated|withdrawn(?! from)|abandoned|in progress|still recruiting"
    r"|trial regist|awaiting (?:results|publication)"
)

_DATE = r"(?:published|publication|search)\w*[^.;]{0,30}\b(?:before|after|prior to)\b"

RULES: tuple[tuple[str, str], ...] = (
    ("ongoing", _ONGOING),
    ("study_design", _DESIGNS),
    ("language", r"not (?:written |published )?in english|non-?english|translat"),
    ("date", _DATE),
    (
        "comparator",
        r"comparator|comparison|control (?:group|arm)|no (?:placebo|control)",
    ),
    ("outcome", r"outcome|follow(?:-?ups?|ed (?:\w+ ){0,2}up)|end-?point"),
    ("insufficient_information", _NO_INFORMATION),
    ("intervention", _INTERVENTION),
    ("population", _POPULATION),
    ("comparator", r"placebo|\bversus\b|\bvs\b|compar"),
    (
        "study_design",
        r"\brcts?\b|randomi[sz]|cross-?over|\btrial|blind|pilot|analysis",
    ),
    (
        "outcome",
        r"measured?\b|efficacy|effect|mortality|safety|\b(?:weeks|months)\b",
    ),
)
"""Code and pattern, in order; searched if no fault is stated."""

_PLAIN = str.maketrans(
    {
        "\N{HYPHEN}": "-",
        "\N{NON-BREAKING HYPHEN}": "-",
        "\N{EN DASH}": "-",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    }
)

_DUPLICATE = re.compile(
    r"duplicat|same (?:study|data|trial|participants) as|copied from"
)


@cache
def _patterns(
    rules: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Compile patterns on first use: a run without exclusions needs none."""
    return tuple((code, re.compile(pattern)) for code, pattern in rules)


def code_of(reason: str, reason_map: Mapping[str, str] | None = None) -> str:
    """Return the code of a written reason, or `OTHER` if no rule matches.

    >>> code_of("Wrong comparator"), code_of("This is a meta-analysis.")
    ('comparator', 'study_design')

    Args:
        reason: as written.
        reason_map: codes by reason, from `read_reason_map`; they override the rules.
    """
    normal = _normal(reason)
    if reason_map and normal in reason_map:
        return reason_map[normal]
    if _DUPLICATE.search(normal):
        return "duplicate"
    if labels := _LABELLED.findall(normal):
        return _LABELS[labels[-1]]
    stated = [
        (match.start(), index, code)
        for index, (code, pattern) in enumerate(_patterns(_FAULTS))
        if (match := pattern.search(normal))
    ]
    if stated:
        return min(stated)[-1]
    return next(
        (code for code, pattern in _patterns(RULES) if pattern.search(normal)), OTHER
    )


def coded(
    exclusions: Iterable[Exclusion], reason_map: Mapping[str, str]
) -> tuple[Exclusion, ...]:
    """Add codes to exclusions that have a reason and no code."""
    return tuple(
        replace(exclusion, reason_code=code_of(exclusion.reason, reason_map))
        if exclusion.reason and not exclusion.reason_code
        else exclusion
        for exclusion in exclusions
    )


class _ReasonRow(RowModel):
    reason: Filled
    reason_code: Annotated[str, one_of(REASON_CODES)]


def read_reason_map(path: Path, findings: InputFindings) -> dict[str, str]:
    """Read codes by reason from a table `reason`, `reason_code`.

    Raises:
        DatasetError: the table is invalid, a code is unknown, or a reason has two.
    """
    codes: dict[str, str] = {}
    for row in read_table(path, _ReasonRow, findings=findings, unit="row"):
        code = row.reason_code
        if codes.setdefault(_normal(row.reason), code) != code:
            raise row.error("the reason has another code further up (remove one)")
    return codes


def _normal(reason: str) -> str:
    """Normalise case, hyphens, apostrophes and blanks."""
    return " ".join(reason.lower().translate(_PLAIN).split())
