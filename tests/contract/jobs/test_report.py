"""Every report begins with its result, and names the items that people should read."""

from __future__ import annotations

import html
import re
import shlex
from html.parser import HTMLParser

import pytest

from jobs.kit.report.headline import MOST_HEADLINES
from runner.table_rendering import format_number
from store.notable import MOST
from store.runs import RunFolder
from store.titles import read_titles
from tests.contract.jobs.jobs import JobCase, SampleRun, SampleRuns
from tests.jobs.kit.report.reported import Page

COMMANDS = 4
"""Items of a report that are explained."""


class Outline(HTMLParser):
    """Where tables, pictures and headings of a page are."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.headings: list[tuple[str, bool]] = []  #: text, and whether it is folded
        self.outside: list[str] = []  #: tables and pictures that no container scrolls
        self.before_pictures: list[str] = []  #: the element before each picture
        self.last = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"table", "img"} and ("div", "scroll") not in self.open:
            self.outside.append(tag)
        if tag == "img":
            self.before_pictures.append(self.last)
            return
        if tag in {"h2", "h3"}:
            self.headings.append(("", any(name == "details" for name, _ in self.open)))
        if tag not in {"meta", "wbr", "input"}:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()
        if tag != "div":
            self.last = tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] in {"h2", "h3"}:
            text, is_folded = self.headings[-1]
            self.headings[-1] = (text + data, is_folded)


@pytest.fixture
def made(case: JobCase, sample_runs: SampleRuns) -> SampleRun:
    """The sample's run, with its report."""
    return sample_runs.of(case)


@pytest.fixture
def text(made: SampleRun) -> str:
    """The report."""
    return (made.scoring() / "report.html").read_text("utf-8")


def test_page_one_says_what_was_asked_by_whom_when_and_for_how_much(
    case: JobCase, made: SampleRun, text: str
) -> None:
    page = Page(text)
    head, _ = page.text.split(" Results ", 1)
    purpose = " ".join((type(case.job).__doc__ or "").split("\n\n")[0].split())
    assert purpose in head
    for model in made.card()["models"]:
        assert model in head
    assert re.search(r"started \d+ [A-Z][a-z]+ 20\d\d, \d\d:\d\d UTC", head)
    assert re.search(r"duration [\d.]+ (ms|s|min|h)", head)
    assert re.search(r"cost (\$[\d.,]+|not known)", head)
    assert re.search(r"tasks [\d,]+ completed", head)


def test_results_come_first_and_the_rest_is_folded(text: str) -> None:
    outline = Outline(text)
    sections = [name for name, is_folded in outline.headings if not is_folded]
    assert sections[0] == "Results"
    assert sections[-2:] == ["Run", "Settings"]
    order = [name for name in sections if name in {"Findings", "Items to look at"}]
    assert order in (["Findings"], ["Findings", "Items to look at"])
    # behind the table there is but the figure of the same
    assert sections[1 : sections.index("Findings")] in ([], ["Headline metrics"])
    # a title stands above its picture
    assert set(outline.before_pictures) <= {"h3"}


def test_numbers_of_page_one_are_those_of_the_scorecard(
    made: SampleRun, text: str
) -> None:
    _, rest = text.split('<div class="results">', 1)
    head, *rows = re.findall(r"<tr>(.*?)</tr>", rest.partition("</table>")[0])
    # the name of a metric stands before its direction
    _, *names = [
        html.unescape(re.sub(r"<span.*</span>|<wbr>", "", cell))
        for cell in re.findall(r"<th[^>]*>(.*?)</th>", head)
    ]
    models = made.card()["models"]
    assert 0 < len(names) <= MOST_HEADLINES
    assert len(rows) == len(models)
    for row, (model, of_model) in zip(rows, models.items(), strict=True):
        by_name = {m["name"]: m for m in of_model["metrics"].values()}
        name, *cells = (Page(f"<p>{cell}</p>").text for cell in _CELL.findall(row))
        assert name == model
        for title, cell in zip(names, cells, strict=True):
            metric = by_name.get(title)
            if metric is None:
                assert cell == "-"
                continue
            ends = [format_number(metric[end]) for end in ("lo", "hi")]
            interval = f" [{', '.join(ends)}]" if metric["lo"] is not None else ""
            n = metric["n"] if metric["n_defined"] is None else metric["n_defined"]
            value = format_number(metric["value"])
            assert cell.replace(" best", "").startswith(f"{value}{interval} n = {n:,}")


_CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>")


def test_a_narrow_page_never_scrolls_as_a_whole(text: str) -> None:
    assert Outline(text).outside == []
    (style,) = Page(text).styles
    assert "@media screen and (max-width: 40rem)" in style
    assert "@page { size: A4;" in style


def test_the_commands_of_items_explain_them(made: SampleRun, text: str) -> None:
    commands = re.findall(r"In full: <code>siftlog (.*?)</code>", text)
    assert len(commands) <= MOST
    for command in commands[:COMMANDS]:
        verb, run, item = shlex.split(command.replace("&#x27;", "'"))
        assert run == made.name
        done = made.command(verb, item)
        assert done.code == 0, done.err
        assert item.partition("/")[0].partition(":")[0] in done.out


def test_a_report_drawn_again_is_the_same_bytes(made: SampleRun, text: str) -> None:
    done = made.command("report", "--rebuild", "--scoring", 1)
    assert done.code == 0, done.err
    assert (made.scoring() / "report.html").read_text("utf-8") == text


def test_items_have_the_titles_that_the_run_knows(made: SampleRun, text: str) -> None:
    shown = re.findall(r'<span class="title">(.*?)</span>', text)
    folder = RunFolder(made.runs / made.name)
    keys = _keys(text)
    known = read_titles(folder.titles, keys)
    assert known or not folder.titles.exists()
    assert len(shown) == sum(key in known for key in keys)
    assert {Page(f"<p>{title}</p>").text for title in shown} <= {
        " ".join(title.split()) for title in known.values()
    }


def _keys(text: str) -> list[str]:
    commands = re.findall(r"In full: <code>siftlog (.*?)</code>", text)
    return [shlex.split(html.unescape(command))[2] for command in commands]
