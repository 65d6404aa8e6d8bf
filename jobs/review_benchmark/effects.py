"""Reads the direction of effect and the certainty that a conclusion states.

A reply or a truth file may state both in fields. Otherwise a rule reads them from
English text: it splits the text into clauses and looks in each for a statement of
effect. The first statement leads; other directions are recorded as well, since a
conclusion about several outcomes often states several directions.

The rule knows words, not medicine. If it cannot tell whether a change is good or bad,
it reads no direction, and the conclusion is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from jobs.kit.lexical import content_words
from jobs.review_benchmark.data import Certainty, Direction
from runner.evaluation import STAYS

EffectOutcome: TypeAlias = Literal["passed", "failed", "not judged"]

EffectReason: TypeAlias = Literal[
    "same", "direction", "certainty", "several_directions", "not_stated", "unrelated"
]

LEVELS: Final[tuple[Certainty, ...]] = ("very_low", "low", "moderate", "high")
"""Certainty in ascending order; `unclear` is no level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedEffect:
    """The direction of an effect and its certainty, as a conclusion states them."""

    direction: Direction | None = None  #: of the leading statement; None: none stated
    others: frozenset[Direction] = frozenset()
    """Further directions that the conclusion states or allows."""
    certainty: Certainty | None = None  #: None: not stated
    outcomes: Mapping[str, Direction] = field(default_factory=dict)
    """Direction that the text states for each outcome it names."""
    words: frozenset[str] = frozenset()  #: its content words; empty: unknown


NO_EFFECT: Final = StatedEffect()
"""Effect of a missing conclusion, or one that states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectComparison:
    """Whether two conclusions state the same effect, and the reason.

    `unrelated`: no words in common, so that equal directions mean nothing.
    """

    outcome: EffectOutcome = field(metadata=STAYS)
    reason: EffectReason = field(metadata=STAYS)


def stated_effect(
    text: str, direction: Direction | None, certainty: Certainty | None
) -> StatedEffect:
    """Return the effect of a conclusion: from fields, else from the text.

    Args:
        text: the conclusion.
        direction: the field; None: left out.
        certainty: the field; None: left out. `unclear` states no level.
    """
    effect = read_effect(text)
    level = effect.certainty if certainty is None else certainty
    return StatedEffect(
        direction=effect.direction if direction is None else direction,
        others=effect.others if direction is None else frozenset(),
        certainty=None if level == "unclear" else level,
        outcomes=effect.outcomes,
        words=frozenset(content_words(text)),
    )


def read_effect(text: str) -> StatedEffect:
    """Return the effect that an English text states, by rule."""
    plain = _plain(text)
    certainty, rest = _explicit(plain)
    statements = list(_statements(rest))
    if not statements:
        return StatedEffect(certainty=certainty)
    lead, clause = statements[0]
    if certainty is None:
        is_doubted = lead == "unclear" or any(
            direction == "unclear" and _EVIDENCE.search(clause_text)
            for direction, clause_text in statements
        )
        certainty = _hedged(clause, is_doubted=is_doubted)
    directions = {direction for direction, _ in statements}
    if len(directions) > 1 or certainty == "very_low":
        # several directions, or hardly any evidence: a label may well be `unclear`
        directions.add("unclear")
    return StatedEffect(
        direction=lead,
        others=frozenset(directions - {lead}),
        certainty=certainty,
        outcomes=_outcomes(statements),
    )


def compare_effects(
    agent: StatedEffect, truth: StatedEffect, within: int
) -> EffectComparison:
    """Compare the leading directions; if they are equal, compare the certainty.

    Args:
        agent: of an agent's conclusion.
        truth: of the authors' conclusion.
        within: levels of certainty by which the two may differ.
    """
    if agent.direction is None or truth.direction is None:
        return EffectComparison(outcome="not judged", reason="not_stated")
    if agent.words and truth.words and not agent.words & truth.words:
        return EffectComparison(outcome="not judged", reason="unrelated")
    contradicts = any(
        direction != truth.outcomes.get(outcome, direction)
        for outcome, direction in agent.outcomes.items()
    )
    is_same = agent.direction == truth.direction
    is_allowed = agent.direction in truth.others or truth.direction in agent.others
    if not is_same and (contradicts or not is_allowed):
        return EffectComparison(outcome="failed", reason="direction")
    if contradicts or not is_same:
        return EffectComparison(outcome="not judged", reason="several_directions")
    levels = [
        LEVELS.index(effect.certainty)
        for effect in (agent, truth)
        if effect.certainty in LEVELS
    ]
    if levels and max(levels) - min(levels) > within:
        return EffectComparison(outcome="failed", reason="certainty")
    return EffectComparison(outcome="passed", reason="same")


def combine_comparisons(every: Sequence[EffectComparison]) -> EffectComparison:
    """Combine the comparisons of one or more replicates.

    The result passes if more than half of the judged ones do.
    """
    judged = [comparison for comparison in every if comparison.outcome != "not judged"]
    if not judged:
        return every[0]
    passed = [comparison for comparison in judged if comparison.outcome == "passed"]
    if 2 * len(passed) > len(judged):
        return passed[0]
    return next(comparison for comparison in judged if comparison.outcome == "failed")


def _outcomes(statements: Sequence[tuple[Direction, str]]) -> dict[str, Direction]:
    """Return the direction stated for each outcome in a clause; the first counts."""
    directions: dict[str, Direction] = {}
    for direction, clause in statements:
        if direction != "unclear":
            for match in _OUTCOME.finditer(clause):
                directions.setdefault(match["bad"] or match["good"], direction)
    return directions


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_HYPHENS = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-")
_CLAUSE = re.compile(
    r"[.!?;:]+(?:\s+|$)|,?\s+(?:but|whereas|while|although|though|however)\s+|,\s+and\s+"
)
_LEVEL = r"(?:very[ -]low|low|moderate|high)"
_EXPLICIT = re.compile(
    rf"\b(?:in|with|of|from|based on)?\s*({_LEVEL}(?:-?,?\s+(?:or|to|and)\s+{_LEVEL})*)"
    r"[ -]+(?:certainty|quality|confidence)(?:\s+evidence(?:\s+that)?)?"
    rf"|\b(?:certainty|quality)\b[^.;]{{0,30}}?\b(?:is|was|are)\s+(?:of\s+)?({_LEVEL})\b"
)

# Sentences about research state nothing about the effect.
_RESEARCH = _any(
    r"\bresearch\b",
    r"\b(?:further|future|more|larger) (?:trials?|studies|evidence|ones)\b",
    r"\bneed(?:s|ed)?\b(?! for\b)",
    r"\bneed for research\b",
    r"\bshould\b",
    r"\bwe (?:identified|included|planned|searched)\b",
)
_UNCLEAR = _any(
    r"\b(?:uncertain(?:ty)?|unclear|inconclusive|unknown)\b",
    r"\binsufficient\b",
    r"\b(?:not enough|too few|lacking)\b",
    r"\b(?:unable to|cannot|can not|not possible to) "
    r"(?:say|tell|be sure|draw|determine|conclude|judge|know)",
    r"\bnot (?:know|known|clear|sure)\b",
    r"\bnot allow\b",
    r"\bno (?:\w+ ){0,2}conclusions?\b",
    r"\bno evidence (?:on|from|about)\b",
)
_WORSE = _any(
    r"\bworse(?:n\w*)?\b",
    r"\bharm(?:ful|s|ed)?\b(?! of| were| was| and)",
    r"\b(?:inferior|detrimental|deteriorat\w+|aggravat\w+|impair\w*)\b",
    r"\bless (?:effective|beneficial|successful|helpful|well)\b",
    r"\bnot (?:\w+ )?as (?:well|effective|good|helpful)\b",
)
_MOVES = (
    r"improv\w*|benefi\w*|effective|better|superior|help\w*|prevent\w*|protect\w*|"
    r"reliev\w*|alleviat\w*|eas(?:e|es|ed)|increas\w*|rais(?:e|es|ed)|prolong\w*|"
    r"reduc\w*|decreas\w*|lower\w*|shorten\w*|affect\w*|chang\w*|differ\w*|worse\w*|"
    r"inferior|influenc\w*|alter\w*|work\w*"
)
_SAME = _any(
    r"\b(?:little|small) (?:or|to) no\b",
    r"\b(?:little|no) (?:(?!adverse|side|serious|harmful)\w+ ){0,3}?"
    r"(?:differences?|effects?|changes?|benefits?|impact|advantage|improvements?"
    r"|reductions?|increases?)\b",
    rf"\b(?:not|hardly|neither|nor)\s+(?:\w+ ){{0,2}}?(?:{_MOVES})\b",
    r"\bno (?:better|worse|more|less|higher|lower|fewer)\b",
    r"\bas (?:effective|good|well|common|often|frequent) as\b",
    r"\b(?:similar|equivalent|comparable|unchanged|unaffected|ineffective)\b",
    r"\b(?:chang\w+|differ\w*) little\b",
    r"\bdoes as well\b",
)
_BETTER = _any(
    r"\bimprov\w*",
    r"\bbenefi(?:t|ts|cial)\b",
    r"\beffective(?:ly)?\b",
    r"\b(?:better|superior|favou?r(?:s|able)|(?<!-)help(?:s|ed|ful)?)\b",
    r"\b(?:prevent(?:s|ed|ing)?|protect(?:s|ed|ive)?)\b",
    r"\b(?:reliev\w+|relief|alleviat\w+|eas(?:e|es|ed)|cures?)\b",
)
_UP = r"\b(?:increas\w*|rais(?:e|es|ed)|higher|more|greater|longer|prolong\w*|gains?)\b"
_DOWN = (
    r"\b(?:reduc\w*|decreas\w*|lower(?:s|ed|ing)?|fewer|less|shorten\w*|shorter|"
    r"diminish\w*|lessen\w*)\b"
)
_MOVED = re.compile(rf"(?P<up>{_UP})|(?P<down>{_DOWN})")
_BAD = (
    r"adverse|admission|agitation|anxi\w+|attack|bleed\w*|bout|burden|cholesterol|"
    r"complication|congestion|cough|cramp|death|delay|depress\w+|diarrh\w+|disab\w+|"
    r"duration|dying|episode|error|exacerbat\w+|failure|falls?|fatigue|fever|fractur\w*|"
    r"headache|hyp(?:o|er)[a-z]+|incidence|infection|injur\w+|insomnia|itch\w*|leak\w*|"
    r"length of stay|lonel\w+|loss|loud\w*|mortality|nausea|pain|pneumonia|"
    r"(?:blood )?pressure|preterm|rash|readmi\w+|recurr\w+|relaps\w+|risk|scar\w*|"
    r"seizure|severity|stay|stiff\w*|stress|stroke|swelling|symptom|tears?|tremor|"
    r"ulcer|vomit\w*|wait\w*"
)
_GOOD = (
    r"abilit\w+|absti\w+|adheren\w+|appetite|attendance|balance|breastf\w+|cessation|"
    r"cogniti\w+|confidence|coverage|cured?|distance|energy|fitness|function\w*|growth|"
    r"ha?emoglobin|heal\w*|hearing|knowledge|language|life|live|live birth|memor\w+|"
    r"mobil\w+|mood|participat\w+|pregnan\w+|quality|recover\w*|remission|respon\w+|"
    r"satisf\w+|sleep\w*|strength|success\w*|surviv\w+|uptake|vision|weight|"
    r"well-?being"
)
_OUTCOME = re.compile(rf"\b(?:(?P<bad>{_BAD})|(?P<good>{_GOOD}))s?\b")
_TAIL = re.compile(
    r"\b(?:than|compared|versus|among|after|over|by|with|at|if|in|for|when)\b"
)
_OF = re.compile(r"^\s*(?:in|of)\b")
_COMPARATOR = re.compile(
    r"\s*(?:the )?(?:placebo|sham|controls?|no treatment|usual care|standard care)\b"
)
_EVIDENCE = re.compile(r"\b(?:evidence|certainty|results?|findings?|estimates?)\b")
_DOUBT = re.compile(r"\b(?:very uncertain|very low confidence)\b")
_LOW = re.compile(r"\b(?:may|might|could|possibl[ey]|suggests?|appears?|seems?)\b")
_MODERATE = re.compile(r"\b(?:probabl[ey]|likely)\b")


def _plain(text: str) -> str:
    return " ".join(text.translate(_HYPHENS).lower().split())


def _explicit(text: str) -> tuple[Certainty | None, str]:
    """Return the lowest certainty in the first mention, and the other words."""
    match = _EXPLICIT.search(text)
    if match is None:
        return None, text
    words = re.findall(_LEVEL, match[1] or match[2])
    stated_levels = [word.replace(" ", "_").replace("-", "_") for word in words]
    return min(
        (level for level in LEVELS if level in stated_levels), key=LEVELS.index
    ), _EXPLICIT.sub(" ", text)


def _statements(text: str) -> Iterator[tuple[Direction, str]]:
    """Yield each clause that states an effect, with its direction."""
    for clause in _CLAUSE.split(text):
        direction = _direction(clause)
        if direction is not None:
            yield direction, clause


def _direction(clause: str) -> Direction | None:
    if _UNCLEAR.search(clause):
        return "unclear"
    if _RESEARCH.search(clause):
        return None
    if _SAME.search(clause) and not _WORSE.search(clause):
        return "no_difference"
    if _WORSE.search(clause):
        better = _SAME.search(clause) is not None
        direction: Direction | None = "no_difference" if better else "worsens"
    elif _BETTER.search(clause):
        direction = "improves"
    else:
        direction = _moved(clause)
    if direction in _FLIPPED and _COMPARATOR.match(clause):
        return _FLIPPED[direction]
    return direction


_FLIPPED: Final[dict[Direction | None, Direction]] = {
    "improves": "worsens",
    "worsens": "improves",
}
"""Direction for the intervention if the clause is about its comparator."""


def _moved(clause: str) -> Direction | None:
    """Return the direction of a rise or fall, by whether its outcome is good or bad."""
    for match in _MOVED.finditer(clause):
        head, tail = clause[: match.start()], clause[match.end() :]
        tail = _TAIL.split(_OF.sub("", tail, count=1), maxsplit=1)[0]
        after = _OUTCOME.search(tail)
        before = list(_OUTCOME.finditer(head))
        outcome = after or (before[-1] if before else None)
        if outcome is not None:
            is_good = (outcome["good"] is not None) == (match["up"] is not None)
            return "improves" if is_good else "worsens"
    return None


def _hedged(clause: str, *, is_doubted: bool) -> Certainty:
    """Return the certainty that the verbs of a clause express, by GRADE's wording."""
    if is_doubted or _DOUBT.search(clause):
        return "very_low"
    if _LOW.search(clause):
        return "low"
    return "moderate" if _MODERATE.search(clause) else "high"
