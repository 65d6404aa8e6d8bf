"""Defines the events of label logs.

A label log is an ordinary log in a folder of its own. Its events stand in the same
union as those of a run (`store.events`), so writing, upcasting, `verify` and unknown
kinds are alike. None of them is about a task of its log: the run and task that a label
was recorded next to are plain facts.

Every event names its author, so that it says the same in any log.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

REPLY: Final = "reply:"
"""Prefix of an entry of `LabelRecorded.visible`: a model's reply, before its name."""
LABELS: Final = "labels"
"""Entry of `LabelRecorded.visible`: labels of other people."""


class LabelEventBase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of every event about labels."""

    author: str


class LabelsStarted(LabelEventBase, frozen=True, kw_only=True):
    """An author's label log was created; the first event of every label log."""

    VERSION: ClassVar[int] = 1

    siftlog_version: str


class ItemDrawn(LabelEventBase, frozen=True, kw_only=True):
    """A draw chose an item; durable before the item is shown to anybody."""

    VERSION: ClassVar[int] = 1

    item: str
    field: str = ""  #: the field that the draw is about; "": the item itself
    design: str  #: such as "random" or "uncertainty"
    probability: float  #: that the design includes the item, in (0, 1]
    stratum: str = ""
    seed: int
    position: int  #: in the order of the draw, from 1
    expected: float  #: expected number of drawn items
    population: int  #: number of items that the draw chose from
    population_sha256: str  #: over their keys, sorted, each ended by a line feed
    score: float | None = None  #: what the probability follows, such as an uncertainty
    run: str = ""  #: id of the run that the items are of


class LabelRecorded(LabelEventBase, frozen=True, kw_only=True):
    """A person labelled an item, or a field of it."""

    VERSION: ClassVar[int] = 1

    item: str
    field: str = ""  #: "": the item itself
    value: str
    reason: str = ""
    visible: list[str] | None = None
    """What the author could see: "text", "title", "reply:MODEL", "labels"; None:
    unknown, as of an imported label."""
    run: str = ""  #: id of the run that it was recorded next to
    run_task: int | None = None  #: number of a task there
    text_sha256: str = ""  #: hex, of the text that was visible; "": unknown
    reply_sha256: str = ""  #: hex, of the reply that it is about; "": unknown, or none
    draw: str = ""  #: id of the `ItemDrawn` that chose the item; "": no draw did
    probability: float | None = None  #: of that draw
    seconds: float | None = None  #: from showing the item to the answer
    source: str = ""  #: name of the file that it was imported from

    @property
    def is_blind(self) -> bool | None:
        """Whether neither a reply nor another label was visible; None: unknown."""
        if self.visible is None:
            return None
        return not any(
            name == LABELS or name.startswith(REPLY) for name in self.visible
        )


class LabelWithdrawn(LabelEventBase, frozen=True, kw_only=True):
    """A label or an adjudication of the same author no longer counts."""

    VERSION: ClassVar[int] = 1

    label: str  #: id of its event, "WRITER:SEQ"
    reason: str = ""


class Adjudicated(LabelEventBase, frozen=True, kw_only=True):
    """A person decided on the final value of an item or a field of it."""

    VERSION: ClassVar[int] = 1

    item: str
    field: str = ""
    value: str
    reason: str = ""
    considered: list[str]  #: ids of the labels that counted at that time
    text_sha256: str = ""  #: hex, of the text that was visible; "": unknown
    reply_sha256: str = ""  #: hex, of the reply that it is about; "": unknown, or none
    run: str = ""  #: id of the run that it was recorded next to


class ScreeningPlanned(LabelEventBase, frozen=True, kw_only=True):
    """Screening a library to a stop began; durable before the first draw.

    Target and alpha are fixed from here on: a stop by others is none of this plan.
    """

    VERSION: ClassVar[int] = 1

    run: str  #: id of the run that ranks the records
    question: str = ""  #: what is screened for, with its criteria
    target: float  #: recall to reach
    alpha: float  #: chance of stopping below it, at most
    seed: int  #: of the random draws
    records: int  #: size of the library
    population_sha256: str  #: over the records' keys, sorted, each ended by a line feed
    library: list[str]  #: SHA-256 of the library's files, in hex, in their order
    order: str  #: what ranks: "model", "tfidf" or "random"
    order_sha256: str  #: over the keys in ranked order, each ended by a line feed
    models: list[str]  #: of the run
    run_seq: int  #: last event of the run that was read
    run_head: str  #: link of the run's chain there, in hex
    scoring: int | None = None  #: number of the scoring that the ranking is of
    scoring_digest: str = ""  #: of its scorecard


class ScreeningStopped(LabelEventBase, frozen=True, kw_only=True):
    """The bound reached the target, and a certificate was written."""

    VERSION: ClassVar[int] = 1

    run: str
    number: int  #: of the certificate, from 1
    certificate_sha256: str  #: of certificate.json, in hex
    recall: float  #: lower bound
    relevant: int  #: records found
    read: int  #: labelled records
