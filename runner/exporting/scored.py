"""The sheets of a scoring: metrics, verdicts by task, and the tables of the job.

They are made from a replay of what the scoring had read, which must give the same
numbers again: cells have types there, which the CSV files of the scoring's folder lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from runner.errors import RunnerError
from runner.exporting.aside import Aside
from runner.exporting.kinds import Kind
from runner.exporting.sheet import Record, Sheet, columns
from runner.records.repeating import repeater
from runner.scorecard import Metric, Row, Scorecard, Verdict
from store.events import ScoringRecorded
from store.runs import RunFolder

_VERDICT: Final = columns(
    task=Kind.INTEGER,
    stage=Kind.TEXT,
    key=Kind.TEXT,
    model=Kind.TEXT,
    value=Kind.TEXT,
    expected=Kind.TEXT,
    correct=Kind.BOOLEAN,
    rule=Kind.TEXT,
)


@contextmanager
def scores(folder: RunFolder, recorded: ScoringRecorded) -> Iterator[tuple[Sheet, ...]]:
    """The sheets of a scoring; their rows are gone when it is left.

    Args:
        folder: of the run.
        recorded: the scoring.

    Raises:
        DatasetError: an input file is missing or wrong.
        RunnerError: the replay gives other numbers than the scoring had.
    """
    with repeater(folder) as run, ExitStack() as leaving:
        made = run.repeated(recorded)
        if made.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be made again: "
                "the code or the inputs have changed since, and a replay gives other "
                f"numbers; siftlog score {folder.run_id} makes a new scoring."
            )
        card = made.scorecard
        verdicts = Aside([column.name for column in _VERDICT], leaving)
        tables = {table.name: Aside(table.columns, leaving) for table in card.tables}
        for table in card.tables:
            for cells in table.rows:
                tables[table.name].add(cells)
        for detail in card.details:
            match detail:
                case Row():
                    tables[detail.table].add(detail.cells)
                case Verdict():
                    verdicts.add(_verdict(detail))
                case _:
                    pass  # a line of a file of the job's own, which is no table
        where = f"scores/{recorded.number}"
        yield (
            metrics(card, where),
            Sheet(name=f"{where}/verdicts", columns=_VERDICT, rows=verdicts),
            *(
                Sheet(name=f"{where}/tables/{name}", columns=rows.columns, rows=rows)
                for name, rows in tables.items()
            ),
        )


def _verdict(given: Verdict) -> Record:
    return (
        given.task,
        given.stage,
        given.key,
        given.model,
        given.value,
        given.expected,
        given.correct,
        given.rule,
    )


def metrics(card: Scorecard, where: str) -> Sheet:
    """A row a metric of a model, in reading order."""
    return Sheet(
        name=f"{where}/metrics",
        columns=columns(
            model=Kind.TEXT,
            metric=Kind.TEXT,
            value=Kind.NUMBER,
            n=Kind.INTEGER,
            n_defined=Kind.INTEGER,
            lo=Kind.NUMBER,
            hi=Kind.NUMBER,
            subset=Kind.TEXT,
            definition=Kind.TEXT,
            note=Kind.TEXT,
        ),
        rows=[
            _metric(model, each) for model, own in card.models.items() for each in own
        ],
    )


def _metric(model: str, metric: Metric) -> Record:
    return (
        model,
        metric.path,
        metric.value,
        metric.n,
        metric.n_defined,
        metric.lo,
        metric.hi,
        metric.subset or None,
        metric.definition,
        metric.note,
    )
