"""Scorings for the tests of their reports, without a run."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from jobs.kit.report.page import write
from runner.score.render import OPERATIONS, ReportSource
from runner.scorecard import (
    LIMITS,
    Axis,
    Band,
    Bars,
    Figure,
    Finding,
    Heatmap,
    Histogram,
    LineSeries,
    Metric,
    Panel,
    Points,
    ReferenceLine,
    Scorecard,
    Stack,
    Table,
    Target,
)
from runner.table_files import csv_lines
from store.events import Input
from tests.replacing import replace

COURSE = {
    "run": "r",
    "partial": False,
    "tasks": {"planned": 4, "completed": 3, "failed": 1, "skipped": 0, "open": 0},
    "attempts": {"started": 5, "answered": 3, "failed": 2, "unknown": 0},
    "tokens_in": 12_345,
    "tokens_out": 678,
    "tokens_cached": 0,
    "cost_usd": None,
    "possible_usd": 0.0,
    "errors": {"Overloaded": 2},
}

RATE = Axis(label="rate", lo=0, hi=1)

FIGURES = (
    Figure(
        name="roc",
        title="ROC",
        caption="Right and up is better.",
        panels=(
            Panel(
                x=RATE,
                y=RATE,
                square=True,
                marks=(
                    Band(x=(0, 0.5, 1), lo=(0, 0.6, 1), hi=(0.1, 0.8, 1), label="95 %"),
                    LineSeries(
                        x=(0, 0.5, None, 1), y=(0, 0.7, None, 1), label="m", steps=True
                    ),
                    Points(
                        x=(0.5,), y=(0.7,), notes=("tau",), series=1, label="chosen"
                    ),
                    ReferenceLine(way="diagonal", label="chance"),
                ),
            ),
        ),
    ),
    Figure(
        name="criteria",
        title="Criteria",
        caption="Bars and their parts.",
        columns=2,
        panels=(
            Panel(
                x=RATE,
                y=Axis(names=("A.1\nn = 3", "A.2\nn = 0")),
                marks=(
                    Bars(values=(0.4, None), lo=(0.5, None), hi=(0.6, None), label="m"),
                    Bars(values=(0.2, None), series=1, label="k"),
                ),
            ),
            Panel(
                x=Axis(names=("fold 1", "fold 2")),
                y=Axis(label="queries", lo=0),
                marks=(
                    Stack(values=(3, 4), label="NEG", series=2),
                    Stack(values=(1, None), label="POS", series=3),
                    ReferenceLine(way="horizontal", at=2),
                ),
            ),
            Panel(
                x=Axis(label="K"),
                y=Axis(label="count"),
                marks=(Histogram(edges=(0, 1, 5), counts=(9, 1)),),
            ),
            Panel(
                x=Axis(names=("0.2", "0.3")),
                y=Axis(names=("0.01", "0.02")),
                marks=(Heatmap(rows=((1, 2), (3, None)), label="FN per 1000"),),
            ),
        ),
    ),
)

CARD = Scorecard(
    models={
        "lab/m": (
            Metric(
                path="auroc",
                value=0.81094,
                n=100,
                n_defined=90,
                lo=0.8,
                hi=0.82,
                mean=0.811,
                std=0.0035,
                subset="all",
                definition="auroc@1",
                name="Area under the curve",
                meaning="How well it tells yes from no.",
                direction="higher",
                is_headline=True,
                target=Target(sense=">=", bound=0.85),
            ),
            Metric(
                path="f1",
                value=None,
                n=0,
                definition="f1@1",
                name="F1",
                meaning="Both in one.",
                is_headline=True,
            ),
            Metric(path="detail", value=7, n=7, definition="count@1(things)"),
        ),
        "lab/k": (
            Metric(
                path="auroc",
                value=0.9,
                n=100,
                definition="auroc@1",
                name="Area under the curve",
                meaning="So.",
                is_headline=True,
            ),
        ),
    },
    summary="",
    tables=(
        Table(
            name="short",
            columns=("model", "value", "id"),
            rows=(("lab/m", 0.123456, 1234), ("lab/k", None, 5678)),
            caption="One row a model.",
        ),
        Table(
            name="first",
            columns=("model", "replicate", "micro.rate", "micro.rate.lo", "x.hi"),
            rows=(("lab/m", None, 0.5, 0.25, 1), ("lab/k", None, None, None, 2)),
            titles={"micro.rate": "Pooled rate"},
            caption="Look here first.",
            is_headline=True,
        ),
        Table(
            name="ends",
            columns=("model", "rate", "rate.lo", "rate.hi"),
            rows=(("lab/m", 0.5, 0.251, 0.749), ("lab/k", 0.4, None, None)),
            caption="Rates.",
        ),
        Table(name="long", columns=("item", "n"), caption="One row an item."),
        Table(name="empty", columns=("item",), caption="Nothing."),
    ),
    findings=(
        Finding(
            code="few", severity="info", where=LIMITS, message="They are but four."
        ),
        Finding(code="drift", severity="info", where="here", message="Some drift."),
        Finding(code="leak", severity="error", where="there", message="A leak.", n=2),
    ),
    figures=FIGURES,
    settings={"profile": "siftlog", "tau": 0.4},
    missing=3,
)

REPORTED = ReportSource(
    job="a-job",
    job_version="1",
    run_id="r",
    scorecard=CARD,
    digest="0123456789abcdef" * 4,
    inputs=(Input(setting="gold", path="/somewhere/gold.csv", sha256="ab" * 32),),
    changes={"tau": (0.4, 0.5)},
    is_imported=False,
    changed_settings=(),
)


def written(folder: Path, card: Scorecard = CARD, long: int = 50) -> str:
    """The page of a scoring whose table "long" has so many rows; also in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OPERATIONS).write_text(json.dumps(COURSE))
    for table in card.tables:
        rows = table.rows
        if table.name == "long":
            rows = tuple((f"item {place}", place) for place in range(long))
        (folder / f"{table.name}.csv").write_text(csv_lines((table.columns, *rows)))
    write(folder, replace(REPORTED, scorecard=card))
    return (folder / "report.html").read_text(encoding="utf-8")


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main"),
    *("section", "footer", "h1", "h2", "h3", "h4", "p", "a", "ul", "li"),
    *("dl", "dt", "dd", "mark"),
    *("div", "span", "strong", "code", "table", "caption", "thead", "tbody", "tr"),
    *("th", "td", "figure", "figcaption", "img", "details", "summary", "wbr"),
    *("picture", "source"),
}


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.styles: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "wbr", "source"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.styles if self._open[-1:] == ["style"] else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def assert_closed(self) -> None:
        """Nothing runs, nothing is fetched, nothing leaves."""
        assert {tag for tag, _ in self.tags} <= ALLOWED
        for _, attributes in self.tags:
            assert not [name for name in attributes if name.startswith("on")]
            assert "style" not in attributes
            assert (attributes.get("href") or "#").startswith("#")
            for name in ("src", "srcset"):
                source = attributes.get(name) or "data:image/svg+xml;base64,"
                assert source.startswith("data:image/svg+xml;base64,")
                assert not {*source} & {" ", "\t", "\n"}
