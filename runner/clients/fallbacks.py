"""Learns from refusals which parameters an endpoint accepts for one model.

Endpoints that speak the same form differ in the parameters they accept, and none lists
them in advance. So the first request uses parameters that most accept, or that the
model's family is known to accept. A refusal names a parameter, and the table `STEPS` of
`runner.clients.fallbacks` gives the replacement used from then on. Each such step is a
fact of the run (`ParameterRefused`), which a later process reads, so it is paid for
with one refused call.

A parameter set by the user is never dropped silently: its refusal stops the endpoint,
unless `--drop-refused` was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from runner.clients.refusals import (
    FORMAT,
    LIMITS,
    PACKED,
    ROOM,
    SYSTEM,
    ErrorBody,
    SentFields,
    error_body,
    one_line,
    refused_fields,
)
from runner.clients.wire_shared import Shape, Structure, chat_fields
from runner.errors import (
    AttemptError,
    BadRequest,
    ContentFault,
    ContextTooLong,
    FormRefused,
)
from runner.errors import OptionRefused as Refused
from runner.messages import ChatRequest, EmbedRequest, Reply, Request
from runner.model_terms import USUAL, ModelTerms
from runner.structured import has_object
from store.events import ParameterRefused

PLAIN_SCHEMA: Final = "plain schema"

FallbackStep: TypeAlias = tuple[str | None, Shape]
"""The replacement in words, and the shape that sends it."""

_TEMPLATE: Final = re.compile(r"alternate|template|jinja|instruction", re.IGNORECASE)
_FEATURES: Final = re.compile(
    r"schema.{0,80}(features?|keywords?|propert|not permitted|not supported by|contain)"
    r"|xgrammar|outlines|unsupported schema|(min|max)(Items|Length|imum)|pattern|anyOf",
    re.IGNORECASE,
)
_STRICT: Final = re.compile(
    r"\bstrict\b|additionalProperties|'required' is required", re.IGNORECASE
)


def _structure(shape: Shape, words: str) -> FallbackStep | None:
    """Step from strict schema to schema, to JSON object, to the prompt alone."""
    is_schema = shape.structure in {Structure.SCHEMA, Structure.LOOSE}
    if shape.structure is Structure.SCHEMA and _STRICT.search(words):
        return Structure.LOOSE.value, replace(shape, structure=Structure.LOOSE)
    if is_schema and not shape.plain_schema and _FEATURES.search(words):
        return PLAIN_SCHEMA, replace(shape, plain_schema=True)
    match shape.structure:
        case Structure.SCHEMA | Structure.LOOSE:
            return Structure.OBJECT.value, replace(shape, structure=Structure.OBJECT)
        case Structure.OBJECT:
            return Structure.TEXT.value, replace(shape, structure=Structure.TEXT)
        case Structure.TEXT:
            return None


def _system(shape: Shape, words: str) -> FallbackStep | None:
    """Step from role system to developer, to the first user message."""
    match shape.system:
        case "system" if not _TEMPLATE.search(words):
            return "developer", replace(shape, system="developer")
        case "system" | "developer":
            return "user", replace(shape, system="user")
        case "user":
            return None


def _packed(shape: Shape, words: str) -> FallbackStep | None:
    """Step from vectors in base64 to vectors as numbers."""
    del words
    return (None, replace(shape, packed=False)) if shape.packed else None


def _room(shape: Shape, words: str) -> FallbackStep | None:
    """Step from a token limit with room for reasoning to the job's limit."""
    del words
    return ("the job's limit", replace(shape, room=False)) if shape.room else None


STEPS: Final[Mapping[str, Callable[[Shape, str], FallbackStep | None]]] = {
    FORMAT: _structure,
    SYSTEM: _system,
    PACKED: _packed,
    ROOM: _room,
}
"""Replacement after each refusal; `None`: there is none. The names of the token limit
are handled by `Fallbacks._limit`; every other field is omitted."""


REFUSED_BY_FAMILY: Final = "known to be refused"
IGNORED: Final = "ignored"

_REASONING: Final = re.compile(
    r"max_tokens.{0,40}with this model.{0,40}max_completion_tokens", re.IGNORECASE
)
"""Wording that OpenAI uses for reasoning models only, which take no temperature."""

STUMBLES: Final = 3
"""Tasks on whose content an endpoint failed, before any reply, until schemas are
disabled for all tasks."""

ENOUGH: Final = 12
"""Replies needed to judge whether a schema has any effect."""


class Fallbacks:
    """Parameters that one endpoint accepts for one model."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        terms: ModelTerms = USUAL,
        structured: bool = True,
        drops: bool = False,
    ) -> None:
        """Start with the parameters that the model's family is known to accept.

        Args:
            endpoint: its address, or the provider's name.
            model: as the run names it.
            terms: request parameters of the model.
            structured: send the schema of replies.
            drops: omit a parameter set by the user once it is refused.
        """
        self._endpoint = endpoint
        self._model = model
        self._terms = terms
        self._drops = drops
        self._facts: list[ParameterRefused] = []
        self._unrecorded: set[str] = (
            set()
        )  #: omitted by the family's rules, not yet recorded
        self._left: list[str] = []  #: refused names of the limit
        self._read = [0, 0]  #: replies to requests with a schema: all, and unfit ones
        self._ignored = False
        self.learned: int | None = None
        """Tokens of a reply at most, where its limit turned out not to bound it; None:
        no reply has shown that."""
        self._stumbled: set[int] = set()  #: tasks sent without a schema
        self.shape = Shape(structure=Structure.SCHEMA if structured else Structure.TEXT)
        family = terms.family
        if family is not None and family.refuses:
            self._unrecorded = set(family.refuses - terms.explicit)
            self._omit(self._unrecorded)
        if family is not None and family.limit == LIMITS[1]:
            self.begin_with(LIMITS[1])

    def begin_with(self, limit: str) -> None:
        """Send the output limit under that name, unless it was refused before."""
        if limit in LIMITS and limit not in self._left:
            self.shape = replace(self.shape, limit=limit)  # type: ignore[arg-type]

    def disable_schema(self) -> None:
        """Stop sending schemas: the provider does not support them."""
        self.shape = replace(self.shape, structure=Structure.TEXT)

    @property
    def has_explicit(self) -> bool:
        """Whether the user set a parameter whose refusal must be reported."""
        return bool(self._terms.explicit) and not self._drops

    def _omit(self, names: Iterable[str]) -> None:
        omitted = self.shape.omitted | frozenset(names)
        self.shape = replace(self.shape, omitted=omitted)

    @property
    def has_family_rules(self) -> bool:
        """Whether rules of the model's family apply."""
        family = self._terms.family
        return family is not None and bool(family.refuses)

    def sent(self, request: Request, task: int = 0) -> SentFields:
        """Return the fields that a call of *request* sends now, for its outcome."""
        shape = self.shape
        if task in self._stumbled:
            shape = replace(shape, structure=Structure.TEXT)
        match request:
            case ChatRequest():
                names = set(chat_fields(request, shape))
                if request.schema is not None and shape.structure != Structure.TEXT:
                    names.add(FORMAT)
                if any(message.role == SYSTEM for message in request.messages):
                    names.add(SYSTEM)
                has_temperature = request.temperature is not None
                self._record_family_refusals(
                    {"temperature"} if has_temperature else set()
                )
                return SentFields(
                    shape=shape, names=frozenset(names), room=request.room, task=task
                )
            case EmbedRequest():
                names = {PACKED} if shape.packed else set()
                return SentFields(shape=shape, names=frozenset(names))
            case _:
                return SentFields(shape=shape, names=request.parameters.names)

    def _record_family_refusals(self, requested: Collection[str]) -> None:
        """Record requested parameters that the family omits."""
        if not self._unrecorded or self._terms.family is None:
            return
        for name in sorted(self._unrecorded & set(requested)):
            self._unrecorded.discard(name)
            words = f"{self._terms.family.name} take no {name}"
            self._record(name, words, None, how=REFUSED_BY_FAMILY)

    # -- refusals --------------------------------------------------------------

    def handle_error(self, error: AttemptError, sent: SentFields) -> AttemptError:
        """Return the error with which an attempt ends, after it *sent* these fields.

        `FormRefused` if the next attempt sends something else; `OptionRefused` if the
        user set the refused parameter. If the parameter was dropped while the call was
        in flight, the refusal is not recorded again.
        """
        if isinstance(error, ContextTooLong) and sent.room and sent.shape.room:
            return self._step(error, [ROOM], sent, one_line(str(error)))
        if isinstance(error, ContentFault) and FORMAT in sent.names:
            return self._stumble(error, sent)
        if not isinstance(error, BadRequest | FormRefused):
            return error
        complaint = error_body(error.body) if error.body else ErrorBody()
        words = complaint.words or one_line(str(error))
        names = refused_fields(
            complaint, words, sent, is_form=isinstance(error, FormRefused)
        )
        return self._step(error, names, sent, words)

    def _step(
        self, error: AttemptError, names: Collection[str], sent: SentFields, words: str
    ) -> AttemptError:
        """Take the next step for each of *names*, if possible."""
        if not names:
            return _as(BadRequest, error) if isinstance(error, FormRefused) else error
        forbidden = [name for name in names if self._is_forced(name)]
        if forbidden:
            return self._stopped(error, forbidden[0], words)
        moved = [self._leave(name, sent, words) for name in names]
        if not any(moved):
            return _as(BadRequest, error) if isinstance(error, FormRefused) else error
        return error if isinstance(error, FormRefused) else _as(FormRefused, error)

    def _stumble(self, error: AttemptError, sent: SentFields) -> AttemptError:
        """Send this task without a schema; all tasks, if no schema ever worked.

        llama.cpp answers 500 where output that has to be JSON was cut in the middle.
        """
        self._stumbled.add(sent.task)
        if self._read[0] == 0 and len(self._stumbled) >= STUMBLES:
            if self.shape.structure is not Structure.TEXT:
                self.disable_schema()
                words = one_line(str(error))
                self._record(FORMAT, words, Structure.TEXT.value)
            self._stumbled.clear()
        return error

    def _is_forced(self, name: str) -> bool:
        """Return whether the user set it and wants its refusal reported."""
        return not self._drops and name in self._terms.explicit

    def _leave(self, name: str, sent: SentFields, words: str) -> bool:
        """Replace a refused parameter; False: there is no replacement."""
        now = self.shape
        if name in LIMITS:
            if now.limit != name or sent.shape.limit != now.limit:
                return True  # already replaced
            step = self._limit(now, name)
        elif name in STEPS:
            step = STEPS[name](sent.shape, words)
            if step is None or _differs(name, now, sent.shape):
                return step is not None
            step = STEPS[name](now, words)
        else:
            if name in now.omitted:
                return True
            step = None, replace(now, omitted=now.omitted | {name})
        if step is None:
            return False
        instead, self.shape = step
        self._record(name, words, instead)
        if name == LIMITS[0] and _REASONING.search(words):
            for other in sorted({"temperature", "top_p"} & sent.names):
                if other not in self._terms.explicit:
                    self._omit({other})
                    reason = f"models that refuse {name} in these words take none"
                    self._record(other, reason, None, how=REFUSED_BY_FAMILY)
        return True

    def _limit(self, shape: Shape, name: str) -> FallbackStep | None:
        """Step to the other name of the output limit, then to none if that is safe."""
        self._left.append(name)
        other = LIMITS[1 - LIMITS.index(name)]
        if other not in self._left:
            return other, replace(shape, limit=other)  # type: ignore[arg-type]
        if self._terms.most_output is None or self._is_forced("max_output_tokens"):
            return None
        return None, replace(shape, limit=None)

    @property
    def most_output(self) -> int | None:
        """Maximum tokens of a reply if no limit is sent; None: one is sent."""
        return self._terms.most_output if self.shape.limit is None else None

    def _stopped(self, error: AttemptError, name: str, words: str) -> AttemptError:
        stopped = _as(Refused, error)
        message = (
            f"{self._endpoint} does not take {name}, which was set for {self._model}: "
            f"{words} (set another value, or let --drop-refused leave it out)"
        )
        stopped.args = (message,)
        return stopped

    # -- replies ---------------------------------------------------------------

    def replied(self, reply: Reply) -> None:
        """Count a reply to a request with a schema; record a schema without effect.

        Under an enforced schema, a reply is JSON unless it was truncated or refused. If
        half of twelve or more replies are not, chance is excluded: at a rate of one in
        twenty this happens once in 10,000 runs.
        """
        is_sent = self.shape.structure is not Structure.TEXT
        if self._ignored or not is_sent or reply.finish_reason != "stop":
            return
        self._read[0] += 1
        self._read[1] += not has_object(reply)
        replies, unfit = self._read
        if replies >= ENOUGH and 2 * unfit >= replies:
            self._ignored = True
            words = f"{unfit} of {replies} replies hold no JSON object"
            instead = self.shape.structure.value
            self._record(FORMAT, words, instead, how=IGNORED)

    def unbounded(self, billed: int, learned: int | None) -> None:
        """Record that the limit does not bound billed output.

        Args:
            billed: output tokens of the reply that showed it.
            learned: output tokens that a call reserves from now on.
        """
        self.learned = learned
        words = (
            f"a reply is billed for {billed:,} tokens of output, which it does not "
            f"bound; {learned:,} are reserved from now on"
        )
        name = self.shape.limit or LIMITS[0]
        self._record(name, words, str(learned), how=IGNORED)

    # -- facts -----------------------------------------------------------------

    def _record(
        self, name: str, words: str, instead: str | None, *, how: str = "refused"
    ) -> None:
        self._facts.append(
            ParameterRefused(
                endpoint=self._endpoint,
                model=self._model,
                name=name,
                words=words,
                instead=instead,
                how=how,
            )
        )

    def take_facts(self) -> list[ParameterRefused]:
        """Return facts to record, each of them once."""
        facts, self._facts = self._facts, []
        return facts

    def restore(self, facts: Iterable[ParameterRefused]) -> None:
        """Apply facts that an earlier process recorded for this endpoint."""
        for fact in facts:
            if (fact.endpoint, fact.model) != (self._endpoint, self._model):
                continue
            self._unrecorded.discard(fact.name)
            if fact.how == IGNORED and fact.name in LIMITS:
                self.learned = int(fact.instead or 0)
            elif fact.how == IGNORED:
                self._ignored = True
            elif fact.name in LIMITS:
                self._left.append(fact.name)
                self.shape = replace(self.shape, limit=fact.instead)  # type: ignore[arg-type]
            elif fact.name in _RESTORED:
                self.shape = _RESTORED[fact.name](self.shape, fact.instead)
            elif not self._is_forced(fact.name):
                # a parameter set since then must be refused by the endpoint itself
                self._omit({fact.name})


def _restored_structure(shape: Shape, instead: str | None) -> Shape:
    if instead == PLAIN_SCHEMA:
        return replace(shape, plain_schema=True)
    return replace(shape, structure=Structure(instead))


_RESTORED: Final[Mapping[str, Callable[[Shape, str | None], Shape]]] = {
    FORMAT: _restored_structure,
    SYSTEM: lambda shape, role: replace(shape, system=role),  # type: ignore[arg-type]
    PACKED: lambda shape, _: replace(shape, packed=False),
    ROOM: lambda shape, _: replace(shape, room=False),
}
"""Functions that apply a recorded step to a shape."""

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    FORMAT: ("structure", "plain_schema"),
    SYSTEM: ("system",),
    PACKED: ("packed",),
    ROOM: ("room",),
}
"""Fields of a shape for each parameter name."""


def _differs(name: str, now: Shape, then: Shape) -> bool:
    """Return whether a step of *name* was taken between two shapes."""
    return any(getattr(now, part) != getattr(then, part) for part in _PARTS[name])


def _as(kind: type[AttemptError], error: AttemptError) -> AttemptError:
    """Convert an error to another class."""
    return kind(
        str(error),
        status=error.status,
        retry_after_s=error.retry_after_s,
        body=error.body,
        headers=error.headers,
        was_sent=error.was_sent,
    )
