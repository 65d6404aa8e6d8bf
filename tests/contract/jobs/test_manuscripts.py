"""Every value of a methods text that is changed is found, and no other.

With SIFTLOG_PROVE, 1,000 changes of 20 texts: the samples of all jobs and recorded runs
that were killed, batched, spent or failed, in Markdown and in LaTeX.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.kit.methods import manuscript
from jobs.kit.methods.check import Fault, canonical, check_manuscript
from jobs.kit.methods.facts import references
from jobs.kit.methods.manuscript import Form, read_manuscript
from jobs.kit.methods.markup import latex, markdown, source_line
from jobs.kit.methods.record import RunRecord, read_record, scoring_numbered
from jobs.kit.methods.references import QuotedValue, QuotedValues, Rounding, siblings
from jobs.kit.methods.text import Choice, methods_text
from store.database import open_reader
from store.read.tasks import parts
from tests.contract.jobs.jobs import JOBS, JobCase, SampleRuns
from tests.golden import runs as golden

PROVE = "SIFTLOG_PROVE" in os.environ
CHANGES = 50 if PROVE else 15
"""Of each text."""
RECORDED = ("failed", "killed", "batched", "spent", "cached-2", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text with the places of its values."""

    form: Form
    text: str
    run: str
    known: QuotedValues

    def places(self) -> list[tuple[int, int, QuotedValue]]:
        read = manuscript._in_latex if self.form == "latex" else manuscript._in_markdown
        return [(at, end, self.known[name]) for at, end, name, _ in read(self.text)]

    def faults(self, text: str) -> tuple[Fault, ...]:
        read = read_manuscript(text, self.form)
        return check_manuscript(read, self.known, self.run).faults


def record_of(log: Path) -> RunRecord:
    with open_reader(log) as reader:
        scoring = scoring_numbered(reader, None)
        key = b"" if scoring is None else bytes.fromhex(scoring.digest)
        card = parts(reader, [key]).get(key, b"") if key else b""
        return read_record(reader, scoring if card else None, card)


def text_of(log: Path, form: Form) -> Text:
    record = record_of(log)
    scored = record.scorecard.get("models", {})
    paths = dict.fromkeys(path for card in scored.values() for path in card["metrics"])
    choice = Choice(metrics=[*paths][:9], changed=["seed", "limit", "level"])
    source = source_line(record.started.run_id, None, 1)
    write = latex if form == "latex" else markdown
    return Text(
        form=form,
        text=write(methods_text(record, choice), source),
        run=record.started.run_id,
        known=references(record),
    )


Change = Callable[[QuotedValue, str, random.Random, QuotedValues], str | None]
"""Returns another text of a value; None: this value has no such change."""


def _digit(
    _: QuotedValue, shown: str, rng: random.Random, __: QuotedValues
) -> str | None:
    places = [at for at, c in enumerate(shown) if c.isascii() and c.isdigit()]
    if not places:
        return None
    at = rng.choice(places)
    other = rng.choice([c for c in "0123456789" if c != shown[at]])
    return shown[:at] + other + shown[at + 1 :]


def _rounding(
    reference: QuotedValue, shown: str, rng: random.Random, _: QuotedValues
) -> str | None:
    is_rounded = reference.rounding in {
        Rounding.METRIC,
        Rounding.PERCENT,
        Rounding.DOLLARS,
    }
    if not is_rounded or "." not in shown or shown.startswith("<"):
        return None
    return rng.choice([shown[:-1], shown + "0", shown + str(rng.randrange(1, 10))])


def _denominator(
    reference: QuotedValue, _: str, rng: random.Random, __: QuotedValues
) -> str | None:
    if not reference.is_denominator or not isinstance(reference.value, int):
        return None
    return f"{reference.value + rng.choice([1, -1, 10]):,}"


def _model(
    reference: QuotedValue, shown: str, rng: random.Random, known: QuotedValues
) -> str | None:
    others = [other.text for other in siblings(known, reference)]
    other = [text for text in others if text not in {shown, "n/a"}]
    return rng.choice(other) if other else None


CHANGED: dict[str, tuple[Change, set[str]]] = {
    "digit": (_digit, {"digit", "rounding", "denominator", "model", "unit"}),
    "rounding": (_rounding, {"rounding", "digit", "unit"}),
    "denominator": (_denominator, {"denominator", "model"}),
    "model": (_model, {"model", "rounding", "unit"}),
}
"""Changes, and what they may be called: 0.916 for 0.9166 is another digit as well as
another rounding, and may be the value of another model."""


def changes(text: Text, n: int, rng: random.Random) -> Iterator[tuple[str, Fault]]:
    """Changes one value at a time; yields what was changed, and the only fault."""
    places = text.places()
    done = 0
    while done < n:
        start, end, reference = rng.choice(places)
        kind = rng.choice([*CHANGED])
        change, names = CHANGED[kind]
        # LaTeX has names of models escaped: only plain values are changed
        shown = text.text[start:end]
        if shown != reference.text:
            continue
        changed = change(reference, shown, rng, text.known)
        if changed is None or canonical(changed) == canonical(shown):
            continue
        if not changed.isascii() or set(changed) & set("\\{}%$#&_^~<>|*`[]"):
            continue
        faults = text.faults(text.text[:start] + changed + text.text[end:])
        assert len(faults) == 1, (kind, reference.name, shown, changed, faults)
        (fault,) = faults
        line = text.text.count("\n", 0, start) + 1
        column = start - text.text.rfind("\n", 0, start)
        assert (fault.line, fault.column) == (line, column)
        assert fault.name == reference.name
        assert (fault.written, fault.expected) == (changed, reference.text)
        assert fault.kind in names, (kind, shown, fault)
        done += 1
        yield kind, fault


def check_text(text: Text, seed: int) -> Counter[str]:
    assert text.faults(text.text) == ()
    assert len(text.places()) > 40
    rng = random.Random(seed)
    found = Counter(kind for kind, _ in changes(text, CHANGES, rng))
    assert sum(found.values()) == CHANGES
    return found


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_each_changed_value_of_a_sample_is_found(
    case: JobCase, form: Form, sample_runs: SampleRuns
) -> None:
    run = sample_runs.of(case)
    text = text_of(run.runs / run.name / "log.db", form)
    found = check_text(text, [*JOBS].index(case.name))
    assert found["digit"]


@pytest.mark.parametrize("run", RECORDED if PROVE else RECORDED[:2])
def test_each_changed_value_of_a_recorded_run_is_found(
    run: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.db"
    log.write_bytes(golden.recorded()[f"runs/{run}/log.db"])
    for form in ("markdown", "latex"):
        check_text(text_of(log, form), len(run))
