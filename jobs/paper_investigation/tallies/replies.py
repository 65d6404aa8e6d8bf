"""How replies were read: which rules fired, what could not be read, what was cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, TypeAlias

from jobs.paper_investigation.marking.paper import Marked, MarkedPaper
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.tallies.measure import Measure, count
from runner.messages import ParseFailure, Reply

Kind: TypeAlias = Literal["extract", "question"]
KINDS: tuple[Kind, ...] = ("extract", "question")


class Replies:
    """The replies of one model."""

    def __init__(self) -> None:
        self.rules: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.failures: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.received = 0
        self.empty = 0
        self.cut = 0
        self.refused = 0
        self.stale = 0
        self.unasked = 0

    def add(self, paper: MarkedPaper) -> None:
        """Count the replies of one paper in one replicate."""
        self.stale += paper.stale
        self.unasked += len(paper.unasked)
        if isinstance(paper.listed, VariantList):
            self.rules["extract"][paper.listed.rule] += 1
        elif isinstance(paper.listed, ParseFailure):
            self.failures["extract"][paper.listed.reason] += 1
        self._note(paper.record.reply)
        for marked in (*paper.questions, *paper.aside):
            self._add_question(marked)

    def _add_question(self, marked: Marked) -> None:
        if marked.judgement is None:
            return
        counted = self.failures if marked.judgement.failed else self.rules
        counted["question"][marked.judgement.rule] += 1
        batch = marked.item.batch
        if batch is None or batch.keys[0] == marked.item.question.key:
            self._note(marked.item.reply)

    def _note(self, reply: Reply | None) -> None:
        if reply is None:
            return
        self.received += 1
        self.empty += not reply.text.strip()
        self.cut += reply.is_truncated
        self.refused += reply.is_refused

    def measures(self) -> Iterator[Measure]:
        """Replies by rule and by reason of failure."""
        for kind in KINDS:
            for word, counter in (
                ("rule", self.rules[kind]),
                ("unparsed", self.failures[kind]),
            ):
                for name in sorted(counter):
                    yield count(
                        f"replies.{kind}.{word}.{name}",
                        counter[name],
                        "replies read so",
                    )
        for name, n in (
            ("empty", self.empty),
            ("cut", self.cut),
            ("refused", self.refused),
        ):
            yield count(f"replies.{name}", n, f"{name} replies")
        yield count("replies.stale", self.stale, "replies the plan does not ask for")
        yield count("questions_not_asked", self.unasked, "planned, but not in the run")
