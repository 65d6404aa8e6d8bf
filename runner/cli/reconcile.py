"""The command reconcile: compares a run with what its provider billed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import arguments
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner.reconcile.attempts import SentCall
    from runner.reconcile.report import Reconciliation
    from store.document import Block, Column, TableBlock

LISTED: Final = 20
"""Differences on the page; JSON has all of them."""

FEWEST_DECIMALS: Final = 4


@click.command()
@arguments.run_argument
@click.argument("usage", metavar="USAGE", type=click.Path(path_type=Path))
@arguments.runs_dir
@arguments.as_json
def reconcile(run_name: str, usage: Path, runs_dir: Path, as_json: bool) -> int:
    """Compare RUN with USAGE, what its provider billed; exit 6 if the bill differs.

    USAGE is a usage export or an invoice, as CSV or JSON lines: of OpenAI, Anthropic,
    OpenRouter or LiteLLM, or with the columns of docs/reconcile.md.

    Finds the line of each call by request id, otherwise by time, model and tokens.
    Settles the calls whose cost the log does not know, names the cause of each
    difference, and ends with the residual that no cause explains. Nothing is written
    into the run.
    """
    from runner.errors import UsageError
    from runner.reconcile.compare import reconcile as compare
    from runner.reconcile.usage_file import read_usage
    from runner.roles import recorded_options
    from store.document import as_text
    from store.read.status import run_started
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    folder.refresh()
    billed = read_usage(usage)
    with folder.open_reader() as reader:
        if not folder.config.exists():
            raise UsageError(
                f"{folder.config} is missing, and with it the prices of the run; "
                "restore the file from a copy."
            )
        options = recorded_options(folder.config, run_started(reader))
        report = compare(reader, options, billed)
    if as_json:
        print_json("siftlog.reconciliation/1", _values(folder.run_id, report))
    else:
        print_text(as_text(_page(report)))
    if report.outside:
        print_note(f"note: {_left_out(report)}")
    for note in report.notes:
        print_note(f"note: {note}.")
    if folder.is_alive():
        print_note("note: the run is alive: calls in flight count as unknown.")
    return CHECK_FAILED if report.differs else DONE


def _dollars(amounts: Sequence[int]) -> list[str]:
    """Format pico-dollars exactly, with the same number of decimals."""
    from runner.reconcile.usage_file import PICO_DECIMALS
    from store.task import PICO_PER_USD

    parts = [divmod(abs(pico), PICO_PER_USD) for pico in amounts]
    fractions = [f"{part:0{PICO_DECIMALS}d}".rstrip("0") for _, part in parts]
    decimals = max(FEWEST_DECIMALS, *map(len, fractions))
    return [
        f"{'-' * (pico < 0)}{whole:,}.{fraction.ljust(decimals, '0')}"
        for pico, (whole, _), fraction in zip(amounts, parts, fractions, strict=True)
    ]


def _page(report: Reconciliation) -> Iterator[Block]:
    from store.document import Fact, Heading, Numbers, TableBlock, Words, plural

    yield Fact("form", f"{report.form}, {plural(report.lines, 'line')}")
    yield Fact("calls", f"{report.calls:,}")
    yield ""
    parts: list[tuple[str, int | None, int]] = [
        ("logged", None, report.logged_pico),
        ("settled", len(report.settlements) or None, report.settled_pico),
        *((cause.value, n, pico) for cause, n, pico in report.causes()),
        ("residual", None, report.residual_pico),
        ("billed", None, report.billed_pico),
    ]
    amounts = _dollars([pico for *_, pico in parts])
    columns: list[Column] = [
        Words("part of the bill", 22),
        Numbers("n"),
        Numbers("USD"),
    ]
    yield TableBlock(
        columns,
        [(name, n, usd) for (name, n, _), usd in zip(parts, amounts, strict=True)],
        indent=0,
    )
    if report.differences:
        yield Heading("Differences")
        yield _table(report)
    if report.possible_pico:
        possible, settled = _dollars([report.possible_pico, report.settled_pico])
        yield ""
        yield f"Calls of unknown cost may have cost up to ${possible};"
        yield f"${settled} was billed for them."


def _table(report: Reconciliation) -> TableBlock:
    from store.document import Numbers, TableBlock, Words

    columns: list[Column] = [
        Numbers("row"),
        Words("cause", 22),
        Numbers("USD"),
        Words("call", 34, keeps_end=True),
    ]
    listed = report.differences[:LISTED]
    amounts = _dollars([difference.amount_pico for difference in listed])
    return TableBlock(
        columns,
        [
            (difference.row, difference.cause.value, usd, _name(difference.call))
            for difference, usd in zip(listed, amounts, strict=True)
        ],
        indent=0,
        total=len(report.differences),
        rest=": --json lists all",
        details=[f"     {difference.detail}" for difference in listed],
    )


def _left_out(report: Reconciliation) -> str:
    """Return a sentence on the lines that were not compared."""
    from store.clock import iso_time
    from store.document import plural

    count = plural(report.outside, "line")
    if report.span_us is None:
        return f"the run sent no call: {count} did not count."
    first, last = map(iso_time, report.span_us)
    return f"{count} outside the time of the run, {first} to {last}, did not count."


def _name(call: SentCall | None) -> str | None:
    return None if call is None else f"task {call.task}.{call.attempt} {call.key}"


def _values(run: str, report: Reconciliation) -> dict[str, Any]:
    from store.task import usd

    def of_call(call: SentCall | None) -> dict[str, Any] | None:
        if call is None:
            return None
        return {
            "task": call.task,
            "attempt": call.attempt,
            "key": call.key,
            "model": call.model,
            "outcome": call.outcome.value,
        }

    return {
        "run": run,
        "form": report.form,
        "calls": report.calls,
        "lines": report.lines,
        "outside": report.outside,
        "differs": report.differs,
        "billed_usd": usd(report.billed_pico),
        "logged_usd": usd(report.logged_pico),
        "possible_usd": usd(report.possible_pico),
        "settled_usd": usd(report.settled_pico),
        "residual_usd": usd(report.residual_pico),
        "settlements": [
            {
                "call": of_call(settlement.call),
                "row": settlement.row,
                "billed_usd": usd(settlement.billed_pico),
            }
            for settlement in report.settlements
        ],
        "differences": [
            {
                "cause": difference.cause.value,
                "amount_usd": usd(difference.amount_pico),
                "row": difference.row,
                "detail": difference.detail,
                "call": of_call(difference.call),
            }
            for difference in report.differences
        ],
        "notes": report.notes,
    }
