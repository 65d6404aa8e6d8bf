"""One HTML page of all runs of a matrix: the table, then each job's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.matrix.rendering import HEADS, cells, pairs
from jobs.matrix.standing import Standing
from jobs.report.document import document, facts_list
from jobs.report.grid import Column, grid
from jobs.report.markup import Child, Element, element
from jobs.report.wording import number
from runner.score.render import REPORT
from store.read.usage import dollars

_NUMERIC = {"tasks", "failed", "cost", "value", "interval", "n"}


def page(group: str, found: Sequence[Standing], budget_usd: float | None) -> str:
    """The text of the page.

    Args:
        group: name of the matrix.
        found: its runs.
        budget_usd: what all of them together may cost.
    """
    jobs = tuple(dict.fromkeys(one.job for one in found))
    metrics = {
        f"Metrics of {job}": tuple(_metrics([o for o in found if o.job == job]))
        for job in jobs
    }
    return document(
        f"{group}: {len(found)} runs",
        _facts(found, jobs, budget_usd),
        {
            "Comparison": tuple(_table(found)),
            **{title: inside for title, inside in metrics.items() if inside},
        },
        _footer(found),
    )


def _facts(
    found: Sequence[Standing],
    jobs: Sequence[str],
    budget: float | None,
) -> Element:
    costs = [one.cost_usd for one in found]
    known = [usd for usd in costs if usd is not None]
    unknown = "" if len(known) == len(costs) else ", and runs whose price is unknown"
    return facts_list(
        {
            "jobs": ", ".join(jobs),
            "models": ", ".join(dict.fromkeys(one.model for one in found)),
            "cost": f"{dollars(sum(known))}{unknown}",
            "budget": "none" if budget is None else f"{dollars(budget)} for all runs",
        }
    )


def _table(found: Sequence[Standing]) -> Iterator[Element]:
    yield grid(
        "Each run with the metric that its last scoring is judged by. Intervals are of "
        "each run alone; whether two differ, their paired comparison says.",
        [Column(name=name, numeric=name in _NUMERIC) for name in HEADS],
        [(_link(one), *cells(one)[1:]) for one in found],
    )


def _link(one: Standing) -> Element | str:
    """The run's id, leading to its report where there is one."""
    if not one.has_report:
        return one.run
    href = f"../{one.run}/scores/{one.scoring}/{REPORT}"
    return element("a", one.run, href=href)


def _metrics(found: Sequence[Standing]) -> Iterator[Element]:
    """Every metric of a job's scored runs, side by side."""
    scored = [one for one in found if one.metrics]
    if not scored:
        return
    first = [one.headline for one in scored if one.headline]
    paths = dict.fromkeys([*first, *(path for one in scored for path in one.metrics)])
    runs = (Column(name=one.run, numeric=True) for one in scored)
    yield grid(
        "Values by run; the run's own report has intervals and definitions.",
        [Column(name="metric"), *runs],
        [
            (
                _named(path, scored),
                *(
                    number(one.metrics[path]["value"]) if path in one.metrics else "-"
                    for one in scored
                ),
            )
            for path in paths
        ],
    )


def _named(path: str, scored: Sequence[Standing]) -> Child:
    """A metric's name with its key below; the key alone where nobody named it."""
    known = (one.metrics[path] for one in scored if path in one.metrics)
    name = next((metric.get("name", "") for metric in known), "")
    key = element("code", path)
    if name in {"", path}:
        return key
    return name, element("span", key, class_="key")


def _footer(found: Sequence[Standing]) -> Element:
    commands = [f"siftlog compare {a} {b}" for a, b in pairs(found)]
    return element(
        "footer",
        element(
            "p",
            "Numbers are shown to three decimals; comparison.csv and comparison.json "
            "hold all digits. n/a is undefined; it is not 0.",
        ),
        *(element("p", element("code", command)) for command in commands),
    )
