"""Writes the methods text of a run as blocks; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from jobs.kit.methods.blocks import (
    Block,
    Bullets,
    Line,
    MethodsTable,
    Paragraph,
    filled,
    joined,
)
from jobs.kit.methods.deviations import deviations
from jobs.kit.methods.facts import MOST_PROMPTS, metric_name, references
from jobs.kit.methods.human import human_part
from jobs.kit.methods.record import RunRecord
from jobs.kit.methods.references import RECORDED, name_of
from runner.model_names import OFFLINE
from runner.sent_requests import SentParameter
from store.document import Heading

MOST_NAMED: Final = 5
"""Values of one kind that a sentence lists."""

_STEPS: Final[Mapping[str, tuple[str, str, str]]] = {
    "selection": (
        "Study selection was supported by",
        "8",
        "Selection process: automation tools used, and how",
    ),
    "data collection": (
        "Data collection was supported by",
        "9",
        "Data collection process: automation tools used, and how",
    ),
}
"""Beginning of the text, and item of PRISMA 2020, by `Job.review_step`."""

_ROLES: Final[Mapping[str, str]] = {
    "judge": "to judge answers",
    "embed": "to embed texts",
    "rerank": "to rank texts",
}
"""Purpose of models by role; those under test need no word."""

_ORIGINS: Final[Mapping[str, str]] = {
    "model": "model",
    "fingerprint": "system fingerprint",
    "provider": "provider",
    "region": "region",
    "tier": "service tier",
}
"""Names of the origins that a reply may report, by `ServedCount.field`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Choices of a text that the log does not determine."""

    step: str = ""  #: `Job.review_step`
    metrics: Sequence[str] = ()  #: paths of the metrics to report, the headline first
    changed: Sequence[str] = ()  #: settings that differ from the default


def methods_text(
    record: RunRecord, choice: Choice, *, has_supplement: bool = False
) -> list[Block]:
    """Return the text of a run; *has_supplement*: its prompts are in a file."""
    return list(_Text(record, choice, has_supplement).blocks())


class _Text:
    """The parts of a text, in their order."""

    def __init__(self, record: RunRecord, choice: Choice, has_supplement: bool) -> None:
        self._record = record
        self._choice = choice
        self._has_supplement = has_supplement
        self._known = references(record)
        scored = record.scorecard.get("models", {})
        self._scored = [
            (model, path)
            for path in choice.metrics
            for model, metrics in scored.items()
            if path in metrics["metrics"]
        ]

    def blocks(self) -> Iterator[Block]:
        yield Heading("Automated processing", level=1)
        yield self._paragraph(self._run(), self._models())
        yield self._paragraph(self._prompts(), self._settings())
        yield self._paragraph(self._tasks(), self._requests(), self._costs())
        yield self._paragraph(self._performance(), self._human())
        if self._scored:
            yield self._metrics_table()
        yield Heading("Deviations from the plan")
        lines = [self._line(d.template) for d in deviations(self._record)]
        if lines:
            yield Bullets(tuple(lines))
        else:
            yield Paragraph(("The log of the run records none.",))
        if any(name.startswith("input:") for name in self._known):
            yield Heading("Input files")
            yield self._inputs_table()
        yield Heading("Disclosure of the use of AI (RAISE)")
        yield self._disclosure("What RAISE asks authors to report.", self._raise())
        yield Heading("Items of PRISMA 2020 on automation tools")
        yield self._disclosure(
            "Items of the PRISMA 2020 checklist that concern automation tools.",
            self._prisma(),
        )

    def _line(self, template: str) -> Line:
        return filled(template, self._known)

    def _paragraph(self, *parts: Iterable[str]) -> Paragraph:
        return Paragraph(self._line(" ".join(s for part in parts for s in part)))

    def _is(self, name: str) -> bool:
        """Return whether a number is known and not 0."""
        reference = self._known.get(name)
        return reference is not None and bool(reference.value)

    def _dates(self) -> str:
        started, ended = self._known["date:started"], self._known["date:ended"]
        if not ended.has_value:
            return "since {date:started}"
        if started.text == ended.text:
            return "on {date:started}"
        return "from {date:started} to {date:ended}"

    def _run(self) -> Iterator[str]:
        start = _STEPS.get(self._choice.step, ("Answers were processed with",))[0]
        yield (
            f"{start} siftlog {{run:siftlog_version}}, job {{run:job}} (version "
            "{run:job_version})."
        )
        if self._record.status.imported:
            yield (
                "The answers had been produced by another tool and were imported on "
                "{date:started} as run {run:id}: the log of siftlog holds the answers "
                "as they were imported, and neither requests nor dates nor costs of "
                "the original calls."
            )
        else:
            yield f"The run with the id {{run:id}} took place {self._dates()} (UTC)."
        stages = [name for name in self._known if name.startswith("stage:")]
        if not stages:
            yield "It has no task."
            return
        replicates = (
            ", with {count:replicates} replicates of each item"
            if self._record.started.replicates > 1
            else ""
        )
        yield (
            "It comprised {count:tasks.planned|task|tasks} in {count:stages|stage|"
            f"stages}} ({joined(f'{{{name}}}' for name in stages)}){replicates}."
        )

    def _models(self) -> Iterator[str]:
        for model in self._record.models:
            name = f"{{{name_of('model', model, 'name')}}}"
            if model == OFFLINE:
                yield (
                    f"{name} is a rule-based baseline that siftlog runs itself, "
                    "without a language model."
                )
                continue
            if model.startswith(RECORDED):
                yield f"Answers of {name} were read from a file of recorded replies."
                continue
            if self._record.status.imported:
                yield f"The import names the model {name}."
                continue
            roles = [
                _ROLES[role]
                for role, models in self._record.started.models.items()
                if model in models and role in _ROLES
            ]
            use = f" {joined(roles)}" if roles else ""
            yield f"Requests named the model {name}{use}."
            yield self._origin(model)

    def _origin(self, model: str) -> str:
        reports = [
            self._values(served.model, served.field, len(served.answers))
            for served in self._record.status.served
            if served.model == model and served.field in _ORIGINS
        ]
        if not reports:
            return "Its replies do not report which version of the model served them."
        return f"Its replies report {'; '.join(reports)}."

    def _values(self, model: str, field: str, n: int) -> str:
        names = [
            name_of("served", model, f"{field}.{at}")
            for at in range(1, min(n, MOST_NAMED) + 1)
        ]
        values = [f"{{{name}}} ({{{name}@replies|reply|replies}})" for name in names]
        rest = ["others"] if n > MOST_NAMED else []
        return f"the {_ORIGINS[field]} {joined([*values, *rest])}"

    def _prompts(self) -> Iterator[str]:
        n = min(len(self._record.prompts), MOST_PROMPTS)
        if not n:
            yield "The log holds no request, so prompts are not reported here."
            return
        where = (
            "given in full in the supplement"
            if self._has_supplement
            else "stored in full in the event log"
        )
        names = [f"prompt:{at}" for at in range(1, min(n, MOST_NAMED) + 1)]
        prompts = [
            f"{{{name}}} (stage {{{name}@stage}}, {{{name}@requests|request|requests}})"
            for name in names
        ]
        rest = ["others"] if n > MOST_NAMED else []
        yield (
            f"Requests were made from {{count:prompts|prompt|prompts}}, {where} and "
            "identified by the SHA-256 of the first request made from each: "
            f"{joined([*prompts, *rest])}."
        )

    def _settings(self) -> Iterator[str]:
        sent = [f"{name} {value}" for name, value in self._parameters()]
        if sent:
            yield (
                f"Requests were sent with {joined(sent)}; other parameters were left "
                "at the provider's default."
            )
        changed = [
            f"{{{name_of('setting-name', name)}}} = {{{name_of('setting', name)}}}"
            for name in self._choice.changed
            if name_of("setting", name) in self._known
        ]
        if changed:
            yield (
                "These settings of the job differed from the default: "
                f"{joined(changed)}."
            )
        else:
            yield "All settings of the job had their default."

    def _parameters(self) -> Iterator[tuple[str, str]]:
        """Yield each parameter with its values, and which requests had them."""
        sent: dict[str, dict[str, list[SentParameter]]] = {}
        for parameter in self._record.parameters:
            if parameter.model != OFFLINE:
                values = sent.setdefault(parameter.name, {})
                values.setdefault(parameter.value, []).append(parameter)
        for by_value in sent.values():
            values_in_words = [
                f"{{{self._parameter(same[0])}}}{where}"
                for same, where in zip(
                    by_value.values(), _places([*by_value.values()]), strict=True
                )
            ]
            (first, *_), *_ = by_value.values()
            yield (
                f"{{{self._parameter(first)}@name}}",
                joined(values_in_words[:MOST_NAMED]),
            )

    def _parameter(self, sent: SentParameter) -> str:
        """Return the name of the value of a parameter."""
        values = [
            other.value
            for other in self._record.parameters
            if (other.stage, other.model, other.name)
            == (sent.stage, sent.model, sent.name)
        ]
        at = values.index(sent.value) + 1
        return name_of("parameter", sent.stage, sent.model, f"{sent.name}.{at}")

    def _tasks(self) -> Iterator[str]:
        if not self._record.status.tasks.planned:
            return
        states = [
            "{count:tasks.completed} ({count:tasks.completed@share}%) were completed",
            "{count:tasks.failed} ({count:tasks.failed@share}%) failed",
            "{count:tasks.skipped|was|were} skipped" + self._reasons("skipped"),
        ]
        if self._is("count:tasks.open"):
            states.append("{count:tasks.open} had no outcome yet")
        yield f"Of {{count:tasks.planned}} tasks, {joined(states)}."
        yield (
            "{count:tasks.unparsed|reply|replies} ({count:tasks.unparsed@share}% of "
            "the completed tasks) could not be read as an answer"
            f"{self._reasons('unparsed')}."
        )

    def _reasons(self, kind: str) -> str:
        """Return the counted reasons in brackets; empty where there are none."""
        names = [name for name in self._known if name.startswith(f"{kind}:")]
        reasons = [
            f"{{{name.replace(kind, f'{kind}-reason', 1)}}}: {{{name}}}"
            for name in names[:MOST_NAMED]
        ]
        if names[MOST_NAMED:]:
            reasons.append("other reasons")
        return f" ({', '.join(reasons)})" if reasons else ""

    def _requests(self) -> Iterator[str]:
        if self._record.status.imported:
            return
        errors = [name for name in self._known if name.startswith("error:")]
        classes = ", ".join(
            f"{{{name.replace('error:', 'error-class:', 1)}}}: {{{name}}}"
            for name in errors[:MOST_NAMED]
        )
        rest = ", other errors" if errors[MOST_NAMED:] else ""
        repeated = (
            f" ({classes}{rest}); {{count:retries}} of these were followed by another "
            "attempt"
            if errors
            else ""
        )
        yield (
            "{count:requests.sent|request was|requests were} sent, and "
            f"{{count:requests.failed}} failed{repeated}."
        )
        if self._is("count:requests.cached"):
            yield (
                "{count:requests.cached|answer was|answers were} taken from earlier "
                "identical requests."
            )
        faults = [
            f"{{{name_of('replies', shares.model, word)}}} of "
            f"{{{name_of('replies', shares.model, 'replies')}}} replies of "
            f"{{{name_of('model', shares.model, 'name')}}} were {word}"
            for shares in self._record.status.replies
            for word in ("truncated", "refused", "filtered", "empty")
            if getattr(shares, word) and shares.model in self._record.models
        ]
        if faults:
            yield f"{joined(faults)}."

    def _costs(self) -> Iterator[str]:
        if self._record.status.imported or self._record.models == (OFFLINE,):
            return
        cost = (
            "cost US${cost:total}"
            if self._known["cost:total"].has_value
            else "had a cost that is not known, as a price is missing"
        )
        yield (
            "Requests used {tokens:in} input tokens and {tokens:out} output tokens "
            f"and {cost}."
        )
        if self._is("cost:possible"):
            yield (
                "Up to US${cost:possible} more may have been billed for requests "
                "whose usage was not reported."
            )
        if self._known["cost:budget"].has_value:
            yield "The budget of the run was US${cost:budget}."

    def _performance(self) -> Iterator[str]:
        if self._record.scoring is None:
            yield "The answers have not been scored."
            return
        yield (
            "Answers were scored by replaying the event log (scoring {run:scoring}, "
            "SHA-256 of the scorecard {run:scorecard}), without a further request."
        )
        if not self._scored:
            return
        path = self._scored[0][1]
        values = [
            f"{self._value(model, path)} for {{{name_of('model', model, 'name')}}}"
            for model, metric in self._scored
            if metric == path and model in self._record.models
        ]
        if values:
            metric = (
                f"{{{metric_name(self._record, self._scored[0][0], path, 'name')}}}"
            )
            yield f"{metric} was {joined(values)}."

    def _value(self, model: str, path: str) -> str:
        """Return the template of a metric with its interval and its denominator."""
        inside = [self._interval(model, path), self._n(model, path)]
        value = f"{{{metric_name(self._record, model, path)}}}"
        return f"{value} ({'; '.join(filter(None, inside))})"

    def _interval(self, model: str, path: str) -> str:
        ends = self._ends(model, path)
        level = "setting:level@percent"
        size = f"{{{level}}}% interval " if level in self._known else "interval "
        return f"{size}{ends}" if ends else ""

    def _ends(self, model: str, path: str) -> str:
        lo, hi = (self._metric(model, path, end) for end in ("lo", "hi"))
        has_ends = self._known[lo].has_value and self._known[hi].has_value
        return f"{{{lo}}} to {{{hi}}}" if has_ends else ""

    def _n(self, model: str, path: str) -> str:
        n, defined = (
            metric_name(self._record, model, path, suffix)
            for suffix in ("n", "n_defined")
        )
        is_part = self._known[defined].has_value and (
            self._known[defined].value != self._known[n].value
        )
        return f"n = {{{defined}}} of {{{n}}}" if is_part else f"n = {{{n}}}"

    def _metrics_table(self) -> MethodsTable:
        level = "setting:level@percent"
        size = f"with {{{level}}}% intervals" if level in self._known else "in full"
        return MethodsTable(
            caption=self._line(f"Performance by metric and model, {size}."),
            columns=("Metric", "Model", "Value", "Interval", "n"),
            rows=tuple(
                (
                    self._line(f"{{{self._metric(model, path, 'name')}}}"),
                    self._line(self._model(model)),
                    self._line(f"{{{self._metric(model, path)}}}"),
                    self._line(self._ends(model, path) or "-"),
                    self._line(self._n(model, path).removeprefix("n = ")),
                )
                for model, path in self._scored
            ),
        )

    def _metric(self, model: str, path: str, suffix: str = "") -> str:
        return metric_name(self._record, model, path, suffix)

    def _model(self, model: str) -> str:
        """Return the template of a model's name."""
        return f"{{{name_of('model', model, 'name')}}}"

    def _human(self) -> Iterator[str]:
        yield from human_part(self._known)

    def _inputs_table(self) -> MethodsTable:
        names = [
            name
            for name in self._known
            if name.startswith("input:") and "@" not in name
        ]
        return MethodsTable(
            caption=("Input files, by the beginning of their SHA-256.",),
            columns=("Setting", "File", "SHA-256"),
            rows=tuple(
                (
                    self._line(f"{{{name}@setting}}"),
                    self._line(f"{{{name}@file}}"),
                    self._line(f"{{{name}}}"),
                )
                for name in names
            ),
        )

    def _disclosure(
        self, caption: str, rows: Iterable[tuple[str, ...]]
    ) -> MethodsTable:
        return MethodsTable(
            caption=(caption,),
            columns=("Item", "Topic", "Statement"),
            rows=tuple(
                ((item,), (topic,), self._line(statement))
                for item, topic, statement in rows
            ),
        )

    def _tool(self) -> str:
        models = joined([self._model(model) for model in self._record.models] or ["-"])
        return (
            f"siftlog {{run:siftlog_version}}, job {{run:job}} (version "
            f"{{run:job_version}}), with {models}; {self._dates()}."
        )

    def _outcome(self) -> str:
        return (
            "{count:tasks.failed} of {count:tasks.planned} tasks failed; "
            "{count:tasks.unparsed} of {count:tasks.completed} replies could not be "
            "read."
        )

    def _validity(self) -> str:
        if not self._scored:
            return _authors("evidence that the tool is fit for this purpose")
        model, path = self._scored[0]
        return (
            f"{{{self._metric(model, path, 'name')}}}: {self._value(model, path)} for "
            f"{self._model(model)}. {_authors('why this suffices for this purpose')}"
        )

    def _prompt_place(self) -> str:
        if not self._record.prompts:
            return _authors("prompts and settings of the original calls")
        return (
            "{count:prompts|prompt|prompts}, identified by SHA-256; texts, parameters "
            "and settings are in the methods text and its supplement."
        )

    def _changes(self) -> str:
        n = len(deviations(self._record))
        return "See Deviations from the plan." if n else "None recorded in the log."

    def _raise(self) -> Iterator[tuple[str, str, str]]:
        purpose = {
            "selection": "Study selection.",
            "data collection": "Data collection.",
        }
        step = purpose.get(self._choice.step, "")
        cost = (
            "US${cost:total}."
            if self._known["cost:total"].has_value
            else "Not recorded in the log."
        )
        human = " ".join(human_part(self._known))
        rows = (
            ("Tools, versions and dates", self._tool()),
            (
                "Purpose and step of the synthesis",
                f"{step} {_authors('what the results were used for')}".strip(),
            ),
            ("Reasons for using AI", _authors("reasons, and alternatives considered")),
            ("Performance and suitability", self._validity()),
            ("Prompts and settings", self._prompt_place()),
            ("Human oversight", human),
            ("Failures and limits", self._outcome()),
            ("Costs", cost),
            ("Changes during the work", self._changes()),
            (
                "Availability of records",
                "Event log of run {run:id}; every number here can be recomputed from "
                "it with siftlog check. " + _authors("where the bundle is deposited"),
            ),
            ("Interests and funding", _authors("relations to makers of the tools")),
        )
        for at, (topic, statement) in enumerate(rows, 1):
            yield str(at), topic, statement

    def _prisma(self) -> Iterator[tuple[str, str, str]]:
        if self._choice.step in _STEPS:
            _, item, topic = _STEPS[self._choice.step]
            yield item, topic, self._tool()
        else:
            for _, item, topic in _STEPS.values():
                yield item, topic, f"If used for this step: {self._tool()}"
        if self._choice.step == "selection":
            yield (
                "16a",
                "Study selection: records excluded by automation tools",
                _authors("records excluded by the tool alone, and by people"),
            )
        yield "24c", "Amendments to the protocol", self._changes()
        yield (
            "27",
            "Availability of data, code and other materials",
            "Event log and scorecard (SHA-256 {run:scorecard}) of run {run:id}, code "
            "of the job (SHA-256 {run:code})."
            if self._record.scoring is not None
            else "Event log of run {run:id}, code of the job (SHA-256 {run:code}).",
        )


def _places(values: Sequence[Sequence[SentParameter]]) -> list[str]:
    """Return which requests had each value: those of a stage, or to a model."""
    if len(values) == 1:
        return [""]
    for kind in ("stage", "model"):
        places = [
            list(dict.fromkeys(getattr(sent, kind) for sent in same)) for same in values
        ]
        if len(set(chain.from_iterable(places))) == sum(map(len, places)):
            suffix = ["name"] if kind == "model" else []
            return [
                f" ({kind} {joined(f'{{{name_of(kind, p, *suffix)}}}' for p in named)})"
                for named in places
            ]
    return [" (in some requests)" for _ in values]


def _authors(what: str) -> str:
    """Return a place that authors have to fill in."""
    return f"[To be completed by the authors: {what}]"
