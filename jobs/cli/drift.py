"""The command `siftlog drift`: what served a run, and whether verdicts changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobs.kit.drift import ModelDrift, OrderedReply, ServedSpan
    from store.document import Block


@click.command(short_help="Test whether a model changed during a run.")
@arguments.run_argument
@click.option(
    "--of",
    "what",
    type=click.Choice(["right", "parsed"]),
    help="Test whether replies are right, by the newest scoring, or could be parsed."
    "  [default: right, if there is a truth]",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability of a false alarm, over all looks.",
)
@arguments.runs_dir
@arguments.as_json
def drift(
    run_name: str, what: str | None, alpha: float, runs_dir: Path, as_json: bool
) -> int:
    """List what served the models of RUN, and test whether their verdicts changed.

    A model's name is an alias: the provider may replace the model behind it. siftlog
    lists the dated models, builds, providers, regions and tiers that replies reported,
    and tests the verdicts of each model in the order of its calls. The test holds
    however often it is repeated while a run goes on. Where other models answered the
    same items, it allows for how difficult they are.
    """
    from jobs.kit.drift import model_drifts, ordered_replies, served_spans
    from store.document import as_text
    from store.read.status import status
    from store.read.tasks import event_times
    from store.runs import resolve
    from store.tables import visible_seq

    folder = resolve(runs_dir, run_name)
    folder.refresh()
    with folder.open_reader() as reader:
        answers = ordered_replies(reader, visible_seq(reader))
        planned = status(reader).tasks.planned
        tested, verdict_of = _verdicts(folder.log, what)
        spans = list(served_spans(answers))
        changes = model_drifts(answers, verdict_of, planned=planned, alpha=alpha)
        seqs = {span.first.seq for span in spans} | {span.last.seq for span in spans}
        seqs |= {change.at.seq for change in changes if change.at}
        times = event_times(reader, sorted(seqs))
    if as_json:
        print_json(
            "siftlog.drift/1",
            {
                "run": folder.run_id,
                "tested": tested,
                "alpha": alpha,
                "served": [_span_json(span, times) for span in spans],
                "models": [_change_json(change, alpha, times) for change in changes],
            },
        )
        return DONE
    if not answers:
        print_note(f"{folder.run_id} has no replies that could be tested.")
        return DONE
    blocks = [*_served(spans), "", *_changes(changes, tested, alpha, times)]
    print_text(as_text(blocks))
    return DONE


def _verdicts(
    log: Path, what: str | None
) -> tuple[str, Callable[[OrderedReply], bool | None]]:
    """Return the name of the test, and the function for the verdict of a reply.

    Raises:
        UsageError: the test is of correctness, and no scoring has labels.
    """
    from jobs.kit.drift import right_by_task
    from runner.errors import UsageError
    from store.verdicts import all_verdicts, latest_verdicts

    path = None if what == "parsed" else latest_verdicts(log)
    right = {} if path is None else right_by_task(all_verdicts(path))
    if right:
        return "right", lambda answer: right.get(answer.task)
    if what == "right":
        raise UsageError(
            f"No scoring of {log.parent.name} says which replies are right: run "
            f"'siftlog score {log.parent.name}' with a truth, or use --of parsed."
        )
    return "parsed", lambda answer: answer.is_parsed


def _served(spans: Sequence[ServedSpan]) -> list[Block]:
    from store.document import Heading, Numbers, TableBlock, Words

    blocks: list[Block] = [Heading("served by", level=1)]
    if not spans:
        return [*blocks, "  No reply reports what served it."]
    columns = (
        *(Words("model"), Words("field"), Words("value"), Numbers("replies")),
        *(Numbers("first event"), Numbers("last event")),
    )
    rows = [
        (
            *(span.model, span.field, span.value, span.answers),
            *(span.first.seq, span.last.seq),
        )
        for span in spans
    ]
    return [*blocks, TableBlock(columns, rows)]


def _changes(
    changes: Sequence[ModelDrift],
    tested: str,
    alpha: float,
    times: Mapping[int, int],
) -> list[Block]:
    from store.document import Fact, Heading

    width = max(len(one.model) for one in changes) + 2
    return [
        Heading(f"share of replies that are {tested}", level=1),
        *(
            Fact(one.model, _sentence(one, alpha, times), indent=2, width=width)
            for one in changes
        ),
    ]


def _sentence(change: ModelDrift, alpha: float, times: Mapping[int, int]) -> str:
    """Describe whether a model's verdicts changed, where and by how much."""
    from store.clock import iso_time

    test, at = change.test, change.at
    if not change.verdicts:
        return "no verdicts"
    evidence = f"e-value {test.largest:.3g}, alarm at {1 / alpha:.3g}"
    before, after = test.before.share, test.after.share
    if not test.is_detected(alpha) or at is None or before is None or after is None:
        return f"no change found in {change.verdicts:,} verdicts ({evidence})"
    snapshot = change.snapshot
    cause = (
        f"; there the {snapshot.field} changed from {snapshot.before} to "
        f"{snapshot.after}"
        if snapshot
        else "; no reply reports another model or build there"
    )
    return (
        f"changed at call {test.call:,}, event {at.seq:,}, {iso_time(times[at.seq])}: "
        f"{before:.1%} of {test.before.n:,} before, {after:.1%} of {test.after.n:,} "
        f"after ({evidence}){cause}"
    )


def _answer_json(answer: OrderedReply, times: Mapping[int, int]) -> dict[str, Any]:
    return {"event": answer.seq, "ts_us": times[answer.seq], "task": answer.task}


def _span_json(span: ServedSpan, times: Mapping[int, int]) -> dict[str, Any]:
    return {
        "model": span.model,
        "field": span.field,
        "value": span.value,
        "replies": span.answers,
        "first": _answer_json(span.first, times),
        "last": _answer_json(span.last, times),
    }


def _change_json(
    change: ModelDrift, alpha: float, times: Mapping[int, int]
) -> dict[str, Any]:
    test, snapshot = change.test, change.snapshot
    return {
        "model": change.model,
        "verdicts": change.verdicts,
        "is_detected": test.is_detected(alpha),
        "e_value": test.largest,
        "detected_at": test.detected_at,
        "call": test.call,
        "at": None if change.at is None else _answer_json(change.at, times),
        "weight": test.weight,
        "before": {"n": test.before.n, "share": test.before.share},
        "after": {"n": test.after.n, "share": test.after.share},
        "snapshot": None
        if snapshot is None
        else {
            "field": snapshot.field,
            "before": snapshot.before,
            "after": snapshot.after,
        },
    }
