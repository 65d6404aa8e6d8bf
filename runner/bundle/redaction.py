"""Decides what each event says in a redacted bundle, and commits to the rest.

Numbers, times and flags stay. Of texts, only those stay that `CLEAR` names: models,
stages, kinds of errors and reasons, and the choices of labels. All others become
tokens, `~` and the commitment in hex, also in fields that a later siftlog adds. Hashes
of texts count as texts: a guess could be checked against a hash without a salt.

A text that stays is checked, too: the caller lists those that share `PIECE` bytes with
anything that was committed to, and they become tokens as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from runner.bundle.commitments import Commitments
from store.events import KINDS
from store.log.integrity import EventRow
from store.redacted_log import EventContent

TOKEN: Final = "~"  # noqa: S105 - no password
"""Begins what takes the place of a text; 64 hexadecimal digits follow."""

COMMITMENT: Final = re.compile(rb"[0-9a-f]{64}")

SHARED_PLACES: Final = frozenset({"key", "part", "name"})
"""Places of values that may stand in many places."""

LONGEST_REASON: Final = 60
"""Characters of a reason that stays: short names, no sentences about a text."""

CLEAR: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(paths.split())
    for kind, paths in {
        "run_started": "run_id job job_version code_sha256 siftlog_version group "
        "models.# models.*.* inputs.*.setting inputs.*.kept expected.first.* "
        "stopping.metric code.job code.kit code.metrics code.engine "
        "code.dependencies.# code.dependencies.*",
        "run_resumed": "code_sha256 changed.*.setting changed.*.kept code.job code.kit "
        "code.metrics code.engine code.dependencies.# code.dependencies.*",
        "stage_added": "stage model form code_sha256 siftlog_version",
        "run_paused": "stage model",
        "run_drained": "by",
        "tasks_planned": "payload.*.stage payload.*.model",
        "task_failed": "error",
        "attempt_started": "payload.model payload.kind payload.purpose "
        "payload.schema.name payload.messages.*.role",
        "attempt_answered": "form finish_reason served.model served.fingerprint "
        "served.provider served.region served.tier",
        "attempt_failed": "error",
        "limit_observed": "model",
        "parameter_refused": "model name how",
        "command_accepted": "command kind",
        "command_rejected": "command kind",
        "command_applied": "command",
        "scoring_recorded": "job_version code_sha256 inputs.*.setting inputs.*.kept "
        "milestone.job milestone.measure milestone.item milestone.part "
        "milestone.standings.# milestone.cost_usd.# headline reached.# "
        "code.job code.kit code.metrics code.engine code.dependencies.# "
        "code.dependencies.* payload.models.# payload.models.*.*.*.lost_at",
        "comparison_decided": "stopping.metric a b verdict cluster",
        "batch_prepared": "model form",
        "batch_polled": "status",
        "batch_ended": "outcome",
        "labels_started": "siftlog_version",
        "item_drawn": "field design run",
        "label_recorded": "field visible.* run draw",
        "label_withdrawn": "label",
        "adjudicated": "field considered.* run",
        "screening_planned": "run order models.*",
        "screening_stopped": "run",
    }.items()
}
"""Texts that stay, by kind: `#` is the name of an entry, `*` any entry."""

REASONS: Final = frozenset(
    {
        ("task_skipped", "reason"),
        ("task_completed", "unparsed"),
        ("attempt_answered", "reask"),
        ("tasks_planned", "payload.*.skip"),
    }
)
"""Texts that stay where they are short: runs count tasks by them."""

VALUES: Final = frozenset({("label_recorded", "value"), ("adjudicated", "value")})
"""Labels, which stay where they are choices of the job."""

SHARED: Final = frozenset(
    {
        ("tasks_planned", "payload.*.key"),
        ("tasks_planned", "payload.*.group"),
        ("scoring_recorded", "milestone.items.#"),
        ("scoring_recorded", "milestone.standings.*.#"),
        ("scoring_recorded", "payload.names.#"),
        ("scoring_recorded", "payload.models.*.#"),
        ("item_drawn", "item"),
        ("label_recorded", "item"),
        ("adjudicated", "item"),
        *(
            (kind, "author")
            for kind in (
                *("labels_started", "item_drawn", "label_recorded", "label_withdrawn"),
                *("adjudicated", "screening_planned", "screening_stopped"),
            )
        ),
        *(
            (kind, "batch")
            for kind in (
                *("batch_prepared", "batch_created", "batch_polled", "batch_ended"),
                "batch_cancelled",
            )
        ),
    }
)
"""Names that stand in several places: items, authors and batches have one token."""

PARTS: Final = frozenset(
    {
        "payload.schema.sha256",
        "payload.messages.*.parts.*",
        "payload.texts.*",
        "payload.query",
        "payload.documents.*",
    }
)
"""Hashes of a request's parts, whose place the commitments to the parts take."""

_INNER_JSON: Final = frozenset({"settings", "payload"})
"""Fields that hold JSON as text: its names stay, its texts do not."""

_MAPPINGS: Final = frozenset(
    {
        *("models", "headers", "code.dependencies", "milestone.items", "reached"),
        *("milestone.standings", "milestone.standings.*", "milestone.cost_usd"),
        *("payload.names", "payload.models", "payload.models.*"),
    }
)
"""Objects whose names are data."""

_MOST_PARTS: Final = 10_000
"""Commitments to parts that are remembered: a long run has millions."""

_LEFT_OUT: Final = frozenset({("attempt_answered", "forked"), ("run_started", "fork")})
"""Fields by which a reader would look for the parent run of a fork."""


@dataclass(slots=True, kw_only=True)
class Redactor:
    """Redacts the events of one log."""

    commit: Commitments
    part: Callable[[bytes], bytes]  #: the text behind the hash of a request's part
    choices: Container[str]  #: values of labels that stay
    hidden: Container[str] = frozenset()  #: texts that do not stay after all
    digests: Mapping[str, str] = field(default_factory=dict)
    """Hashes of scorecards in the bundle, by those that the log has."""
    log: str = ""  #: begins the places of a log that is not the run's
    visible: set[str] = field(default_factory=set)  #: the texts that stayed
    _parts: dict[str, str] = field(default_factory=dict)

    def event(self, row: EventRow, content: EventContent) -> EventContent:
        """Return what an event says in the bundle."""
        self.commit.at = f"{self.log}event/{row.seq}"
        kind = row.kind if row.kind in KINDS else ""
        fields = {
            name: value
            for name, value in msgspec.json.decode(content.facts).items()
            if (kind, name) not in _LEFT_OUT
        }
        facts = msgspec.json.encode(self._walked(kind, "", "facts", fields))
        return EventContent(facts, self._payload(kind, content.payload))

    def clear(self, text: str) -> str:
        """Return a text that may stay, or its token if it may not after all."""
        if text in self.hidden:
            return self.shared("name", text)
        self.visible.add(text)
        return text

    def shared(self, sort: str, text: str) -> str:
        """Return the token of a text that may stand in many places."""
        return TOKEN + self.commit.shared(sort, text.encode()).hex()

    def item(self, key: str) -> str:
        """Return the token of an item."""
        return self.shared("key", key)

    def placed(self, place: str, text: str) -> str:
        """Return the token of a text that stands in one place."""
        return TOKEN + self._commitment(place, text.encode())

    def _commitment(self, place: str, value: bytes) -> str:
        return self.commit.place(f"{self.commit.at}/{place}", value).hex()

    def _payload(self, kind: str, payload: bytes | None) -> bytes | None:
        match kind:
            case _ if payload is None:
                return None
            case (
                "tasks_planned"
                | "attempt_started"
                | "scoring_recorded"
                | "batch_prepared"
            ):
                fields = msgspec.json.decode(payload)
                redacted = self._walked(kind, "payload", "payload", fields)
            case _:
                redacted = {"commitment": self._commitment("payload", payload)}
        return msgspec.json.encode(redacted)

    def _walked(self, kind: str, path: str, place: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a value of the facts or the payload, redacted.

        Args:
            kind: of the event; empty: not known here.
            path: of the value, with `*` for entries, as in `CLEAR`.
            place: its path with the numbers of entries.
            value: it.
        """
        match value:
            case dict() if path in _MAPPINGS or not kind:
                return {
                    self._text(kind, _joined(path, "#"), f"{place}/#{number}", name): (
                        self._walked(
                            kind, _joined(path, "*"), f"{place}/{number}", item
                        )
                    )
                    for number, (name, item) in enumerate(value.items())
                }
            case dict():
                return {
                    name: self._walked(
                        kind, _joined(path, name), f"{place}/{name}", item
                    )
                    for name, item in value.items()
                }
            case list():
                return [
                    self._walked(kind, _joined(path, "*"), f"{place}/{number}", item)
                    for number, item in enumerate(value)
                ]
            case str():
                return self._text(kind, path, place, value)
            case _:
                return value

    def _text(self, kind: str, path: str, place: str, text: str) -> str:
        is_reason = (kind, path) in REASONS and len(text) <= LONGEST_REASON
        is_choice = (kind, path) in VALUES and text in self.choices
        if not text or path in CLEAR.get(kind, ()) or is_reason or is_choice:
            return self.clear(text)
        if (kind, path) in SHARED:
            return self.item(text)
        if kind == "attempt_started" and path in PARTS:
            return self._part(text)
        if kind == "scoring_recorded" and path == "digest" and text in self.digests:
            return self.digests[text]
        if kind and path in _INNER_JSON:
            return json.dumps(self._inner(place, json.loads(text)))
        return self.placed(place, text)

    def _part(self, sha256: str) -> str:
        """The commitment to the part of a request, in the form of its hash."""
        if sha256 not in self._parts:
            if len(self._parts) >= _MOST_PARTS:
                self._parts.clear()
            text = self.part(bytes.fromhex(sha256))
            self._parts[sha256] = self.commit.shared("part", text).hex()
        return self._parts[sha256]

    def _inner(self, place: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return JSON that a field holds as text, with its names and no text."""
        match value:
            case dict():
                return {
                    self.clear(name): self._inner(f"{place}/{name}", item)
                    for name, item in value.items()
                }
            case list():
                return [
                    self._inner(f"{place}/{number}", item)
                    for number, item in enumerate(value)
                ]
            case str() if value:
                return self.placed(place, value)
            case _:
                return value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
