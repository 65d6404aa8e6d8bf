"""Reads results of promptfoo: `promptfoo eval --output FILE.json` or `.jsonl`.

A JSON file has its results in `results.results`, a JSON lines file one a line; a result
is a reply of one provider to one prompt with the variables of one test. `promptIdx` is
a column of promptfoo's table, a prompt with a provider, and `--repeat` makes further
tests of the same content: `PromptfooTable` finds what belongs together.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from runner.imports.json_stream import ELEMENT, values_in
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    decoded,
    error_word,
    finish_of,
    flat_fields,
    json_lines,
    messages_from,
    opened,
    score_number,
    seconds_of,
)
from runner.messages import Usage

ERROR: Final = 2
"""`failureReason` of a call that failed; 1 is of an assertion that did."""

RIGHT: Final = ("equals", "contains", "icontains")
"""Assertions whose value is a right answer."""


class PromptfooProvider(msgspec.Struct, kw_only=True):
    """A model, with its parameters."""

    id: str = ""
    label: str | None = None


class PromptfooPrompt(msgspec.Struct, kw_only=True):
    """The prompt as it was sent: text, or messages as JSON."""

    raw: str = ""
    label: str = ""


class PromptfooUsageDetails(msgspec.Struct, kw_only=True):
    """Parts of the tokens of a reply."""

    reasoning: int | None = None
    cacheReadInputTokens: int | None = None  # noqa: N815 - promptfoo's name


class PromptfooUsage(msgspec.Struct, kw_only=True):
    """Tokens of a reply; of one from promptfoo's own cache, they are all `cached`."""

    prompt: int | None = None
    completion: int | None = None
    completionDetails: PromptfooUsageDetails | None = None  # noqa: N815 - as above

    @property
    def usage(self) -> Usage | None:
        """The same as siftlog counts it; None if there was no call."""
        if self.prompt is None or self.completion is None:
            return None
        details = self.completionDetails or PromptfooUsageDetails()
        return Usage(
            tokens_in=self.prompt,
            tokens_out=self.completion,
            tokens_cached=details.cacheReadInputTokens or 0,
            tokens_reasoning=details.reasoning or 0,
        )


class PromptfooResponse(msgspec.Struct, kw_only=True):
    """Response of the provider."""

    output: Any = None
    error: str | None = None
    tokenUsage: PromptfooUsage | None = None  # noqa: N815 - as above
    finishReason: str | None = None  # noqa: N815 - as above


class PromptfooComponent(msgspec.Struct, kw_only=True):
    """Outcome of one assertion, or of a set of them, which is not repeated here."""

    assertion: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class PromptfooGrading(msgspec.Struct, kw_only=True):
    """Outcome of the assertions of a test, one component for each."""

    componentResults: list[PromptfooComponent | None] | None = None  # noqa: N815 - as above


class PromptfooResult(msgspec.Struct, kw_only=True):
    """A result."""

    testIdx: int = 0  # noqa: N815 - as above
    promptIdx: int = 0  # noqa: N815 - as above
    promptId: str = ""  # noqa: N815 - as above
    provider: PromptfooProvider = msgspec.field(default_factory=PromptfooProvider)
    prompt: PromptfooPrompt = msgspec.field(default_factory=PromptfooPrompt)
    vars: dict[str, Any] = {}
    response: PromptfooResponse | None = None
    error: str | None = None
    failureReason: int = 0  # noqa: N815 - as above
    success: bool = False
    score: float | None = None
    namedScores: dict[str, Any] = {}  # noqa: N815 - as above
    latencyMs: float | None = None  # noqa: N815 - as above
    cost: float | None = None
    testCase: dict[str, Any] = {}  # noqa: N815 - as above
    gradingResult: PromptfooGrading | None = None  # noqa: N815 - as above

    @property
    def column(self) -> _Column:
        """Its column in promptfoo's table."""
        return _Column(
            self.promptIdx,
            self.promptId or self.prompt.label,
            self.provider.label or self.provider.id,
        )

    @property
    def test(self) -> bytes:
        """A digest of its test, which repetitions share."""
        content = msgspec.json.encode([self.vars, self.testCase], order="deterministic")
        return sha256(content).digest()


class PromptfooColumn(msgspec.Struct, kw_only=True):
    """A column as the head of a JSON file lists it."""

    provider: str = ""
    id: str = ""
    label: str = ""


class _Column(NamedTuple):
    number: int  #: from 0
    prompt: str  #: its id
    provider: str


class PromptfooTable:
    """Names the items and models of promptfoo's table.

    Columns with the same prompt are one item, whatever their provider. A further column
    of a provider with the same prompt, such as one with another temperature, is a model
    of its own.

    >>> table = PromptfooTable()
    >>> table.add_columns([_Column(0, "p", "a"), _Column(1, "p", "b")])
    >>> table.add_columns([_Column(2, "q", "b"), _Column(3, "q", "b")])
    >>> [table.columns[number] for number in range(4)]
    [(0, 'a'), (0, 'b'), (1, 'b'), (1, 'b 2')]
    """

    def __init__(self) -> None:
        self.columns: dict[int, tuple[int, str]] = {}  #: prompt's number and model
        self._prompts: dict[str, int] = {}
        self._seen: Counter[tuple[str, str]] = Counter()
        self._tests: dict[bytes, int] = {}

    def add_columns(self, columns: Iterable[_Column]) -> None:
        """Add columns, in their order in the table."""
        for column, prompt, provider in columns:
            if column not in self.columns:
                number = self._prompts.setdefault(prompt, len(self._prompts))
                self._seen[prompt, provider] += 1
                nth = self._seen[prompt, provider]
                model = provider if nth == 1 else f"{provider} {nth}"
                self.columns[column] = number, model

    def add_tests(self, tests: Iterable[tuple[int, bytes]]) -> None:
        """Add numbers and digests of tests; repetitions count as the first of them."""
        for number, test in tests:
            self._tests.setdefault(test, number)

    def place(self, result: PromptfooResult) -> tuple[str, str]:
        """Return the item and the model of a result."""
        prompt, model = self.columns[result.promptIdx]
        item = f"test-{self._tests[result.test]}"
        return item + (f"/prompt-{prompt}" if prompt else ""), model


_TIME: Final = ("results", "timestamp")
_COLUMNS: Final = ("results", "prompts", ELEMENT)
_RESULTS: Final = ("results", "results", ELEMENT)


def read_json(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a JSON file, in file order.

    Raises:
        DatasetError: the file is cut, or a value is off.
    """
    created: int | None = None
    table = PromptfooTable()
    with opened(path) as file:
        for value in values_in(file, path.name, [_TIME, _COLUMNS, _RESULTS]):
            where = f"{path.name} line {value.line}"
            if value.path == _TIME:
                created = seconds_of(decoded(value.raw, str, where))
            elif value.path == _COLUMNS:
                column = decoded(value.raw, PromptfooColumn, where)
                prompt = column.id or column.label
                number = len(table.columns)
                table.add_columns([_Column(number, prompt, column.provider)])
            else:
                result = decoded(value.raw, PromptfooResult, where)
                table.add_columns([result.column])  # of a file without a list of them
                table.add_tests([(result.testIdx, result.test)])
                yield _reply(result, table, created)


def read_lines(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a JSON lines file.

    It is read twice: its lines are in the order in which calls ended, and what belongs
    together is known at its end.

    Raises:
        DatasetError: a line is no result.
    """
    columns: set[_Column] = set()
    tests: set[tuple[int, bytes]] = set()
    for _, result in json_lines(path, PromptfooResult):
        columns.add(result.column)
        tests.add((result.testIdx, result.test))
    table = PromptfooTable()
    table.add_columns(sorted(columns))
    table.add_tests(sorted(tests))
    for _, result in json_lines(path, PromptfooResult):
        yield _reply(result, table, None)


def _reply(
    result: PromptfooResult, table: PromptfooTable, created_s: int | None
) -> ForeignReply:
    dropped: dict[str, None] = {}
    response = result.response or PromptfooResponse()
    error = response.error or (result.error if result.failureReason == ERROR else None)
    output = response.output
    text = None
    if output is not None and not error:
        text = output if isinstance(output, str) else json.dumps(output)
    scores = {name: score_number(value) for name, value in result.namedScores.items()}
    scores |= {"score": score_number(result.score), "pass": float(result.success)}
    if result.gradingResult:
        dropped["explanations of scores"] = None
    item, model = table.place(result)
    return ForeignReply(
        item=item,
        model=model,
        messages=messages_from(_prompt(result.prompt.raw), dropped)
        if result.prompt.raw
        else (),
        text=text,
        error="" if text is not None else _error(error),
        epoch=result.testIdx + 1,
        finish_reason=finish_of(response.finishReason),
        usage=None if response.tokenUsage is None else response.tokenUsage.usage,
        created_s=created_s,
        latency_ms=result.latencyMs,
        cost_usd=result.cost,
        target=_target(result),
        # a call that failed has a score of 0, which no assertion gave
        scores={name: value for name, value in scores.items() if value is not None}
        if text is not None
        else {},
        fields=flat_fields(result.vars, "vars"),
        dropped=tuple(dropped),
    )


_STATUS: Final = re.compile(r"API error: (\d{3})\b")


def _error(error: str | None) -> str:
    """Return a word for a failure, `http_429` for a reply with that status."""
    match = _STATUS.match(error or "")
    return f"http_{match[1]}" if match else error_word(error)


def _prompt(raw: str) -> str | list[RoleMessage]:
    """Return the messages of a prompt that is a list of them, or its text."""
    if not raw.lstrip().startswith("["):
        return raw
    try:
        return msgspec.json.decode(raw, type=list[RoleMessage])
    except msgspec.DecodeError:
        return raw


def _target(result: PromptfooResult) -> str | None:
    """Return the value of the first assertion that states a right answer.

    Its variables are filled in where it was graded.
    """
    for assertion, rendered in _assertions(result):
        if assertion.get("type") in RIGHT:
            value = assertion.get("value") if rendered is None else rendered
            return value if isinstance(value, str) else None
    return None


def _assertions(result: PromptfooResult) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the assertions of a test, each with its rendered value if it has one."""
    grading = result.gradingResult or PromptfooGrading()
    graded = [one for one in grading.componentResults or () if one and one.assertion]
    for component in graded:
        metadata = component.metadata or {}
        yield component.assertion or {}, metadata.get("renderedAssertionValue")
    declared = result.testCase.get("assert")
    if not graded and isinstance(declared, list):
        yield from ((one, None) for one in declared if isinstance(one, dict))
