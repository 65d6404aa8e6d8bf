"""The dialects that `siftlog simulate --dialect` speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from runner.simulate.bill import Tokens
from runner.simulate.chance import Chance
from runner.simulate.dialect import (
    Dialect,
    Reasoning,
    Usage,
)
from runner.simulate.forms import (
    beside,
    charged,
    hit_and_miss,
    inside,
    only_in_total,
    three,
    timed,
    untold,
)
from runner.simulate.hosted import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    GROQ,
    MISTRAL,
    OPENROUTER,
    XAI,
)
from runner.simulate.openai_family import (
    AZURE,
    ONLY_RESPONSES,
    OPENAI,
    OPENAI_REASONING,
    PLAIN,
)
from runner.simulate.servers import LITELLM, LLAMACPP, OLLAMA, TGI, VLLM

HOSTILE: Final = replace(
    OPENAI,
    name="hostile",
    summary="all of them at random, by seed: each reply may have another form",
    source="the other rows",
    paths=PLAIN.paths,
    needs_key=False,
    reasoning=Reasoning(most=1200),
    cache_least=1,
    statuses=(498, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529),
    html=frozenset({502, 504, 520, 521, 522, 523, 524}),
)

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(PLAIN, OPENAI, OPENAI_REASONING, AZURE, ANTHROPIC, GEMINI, XAI),
            *(DEEPSEEK, MISTRAL, GROQ, OPENROUTER, VLLM, OLLAMA, LLAMACPP, TGI),
            *(LITELLM, ONLY_RESPONSES, HOSTILE),
        )
    }
)
"""From a name to its dialect."""


# -- hostile -------------------------------------------------------------------


def _no_usage(_tokens: Tokens, _cost: Decimal) -> dict[str, object]:
    return {}


def _nulls(tokens: Tokens, cost: Decimal) -> dict[str, object]:
    return dict.fromkeys(three(tokens, cost))


def _only_total(tokens: Tokens, _cost: Decimal) -> dict[str, object]:
    return {"total_tokens": tokens.total}


def _floats(tokens: Tokens, cost: Decimal) -> dict[str, object]:
    return {name: float(count) for name, count in three(tokens, cost).items()}


def _texts(tokens: Tokens, cost: Decimal) -> dict[str, object]:
    return {name: str(count) for name, count in three(tokens, cost).items()}


UNREADABLE: Final[frozenset[Usage]] = frozenset(
    {untold, _no_usage, _nulls, _only_total}
)
"""Forms of usage of which nobody can tell what is billed."""

TELLS_CACHE: Final[frozenset[Usage]] = frozenset(
    {inside, beside, only_in_total, hit_and_miss, charged}
)
"""Forms that tell what was cached."""

_USAGES: Final[tuple[Usage, ...]] = (
    *(inside, three, beside, only_in_total, hit_and_miss, timed, charged),
    *(_floats, _texts, untold, _no_usage, _nulls, _only_total),
)
_ENDS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {"stop": "eos"},
    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
    {"stop": None},
    {"stop": 1, "length": 2},
)


def settled(dialect: Dialect, seed: int) -> Dialect:
    """The dialect of a server: a hostile one refuses the parameters of another's."""
    if dialect.name != HOSTILE.name:
        return dialect
    other = Chance("hostile", seed).pick(_SPOKEN)
    return replace(dialect, rules=other.rules, caps=other.caps, ignored=other.ignored)


def of_request(dialect: Dialect, seed: int, digest: str, seen: int) -> Dialect:
    """The dialect of one reply: a hostile one takes each of its parts from another."""
    if dialect.name != HOSTILE.name:
        return dialect
    chance = Chance("row", seed, digest, seen)
    errors, served = chance.pick(_SPOKEN), chance.pick(_SPOKEN)
    limits = chance.pick(_SPOKEN)
    usage = chance.pick(_USAGES)
    return replace(
        dialect,
        usage=usage,
        words=errors.words,
        error=errors.error,
        ends=chance.pick(_ENDS),
        is_in_parts=chance.unit() < 0.25,  # noqa: PLR2004 - a share
        empty=chance.pick(("", None)),
        reasoning=replace(
            dialect.reasoning,
            shown=chance.pick(("", "reasoning", "reasoning_content", "think")),
        ),
        dated=served.dated,
        fingerprints=served.fingerprints,
        providers=served.providers,
        more=served.more,
        ids=served.ids,
        limits=limits.limits,
        waits=limits.waits,
        # a write that no field of this form tells of cannot be billed as one
        cache_writes=usage is charged,
        cache_least=1 if usage in {inside, beside, hit_and_miss, charged} else 0,
    )


_SPOKEN: Final = tuple(
    row
    for row in DIALECTS.values()
    if row.name not in {PLAIN.name, HOSTILE.name, ONLY_RESPONSES.name}
)
