"""Figures of every job are well formed, named and captioned, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from jobs.kit.report.figures import LONGEST_IN, MM, draw_figure
from jobs.kit.report.plot_marks import RC
from runner.score.scoring import effective_settings, replayed
from runner.scorecard import Category, Figure, Heatmap, LineSeries, ReferenceLine
from store.database import open_reader
from store.runs import RunFolder
from store.tables import last_seq
from tests.contract.jobs.jobs import JobCase, SampleRuns
from tests.drawn_text import overlapping
from tests.jobs.kit.report.reported import Page

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {
    f"{SVG}{name}"
    for name in ("svg", "metadata", "defs", "style", "g", "path", "use", "clipPath")
} | {f"{SVG}rect", f"{SVG}pattern", f"{SVG}image"}

SLACK_IN = 0.01


@pytest.fixture(scope="module")
def known() -> dict[str, Sequence[Figure]]:
    """The figures of each job's sample that a test has asked for."""
    return {}


@pytest.fixture
def figures(
    case: JobCase, sample_runs: SampleRuns, known: dict[str, Sequence[Figure]]
) -> Sequence[Figure]:
    """The figures of the sample's run."""
    if case.name not in known:
        known[case.name] = _replayed(case, sample_runs)
    return known[case.name]


def _replayed(case: JobCase, sample_runs: SampleRuns) -> Sequence[Figure]:
    run = sample_runs.of(case)
    folder = RunFolder(run.runs / run.name)
    settings = effective_settings(case.job, folder, {})
    with open_reader(folder.log) as reader:
        seq = last_seq(reader)
        card = replayed(case.job, reader, settings, [], through_seq=seq).scorecard
        return [each for each in card.figures if isinstance(each, Figure)]


def test_each_figure_is_two_well_formed_files_and_in_the_report(
    case: JobCase, sample_runs: SampleRuns, figures: Sequence[Figure]
) -> None:
    run = sample_runs.of(case)
    # the report adds that of the headline metrics
    names = ["headline", *(figure.name for figure in figures)]
    files = {path.name for path in (run.scoring() / "figures").iterdir()}
    assert files == {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    for name in names:
        root = ET.parse(run.scoring() / "figures" / f"{name}.svg").getroot()  # noqa: S314 - ours
        assert root.tag == f"{SVG}svg"
        tags = {each.tag for each in root.iter() if each.tag.startswith(SVG)}
        assert tags <= DRAWN, name
    page = Page((run.scoring() / "report.html").read_text("utf-8"))
    page.assert_closed()
    assert len(page.named("img")) == len(page.named("figcaption")) == len(names) > 0


def test_each_figure_has_a_title_a_caption_and_axes_with_names(
    figures: Sequence[Figure],
) -> None:
    assert len({figure.title for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.title.strip() == figure.title != ""
        assert figure.caption.rstrip().endswith("."), figure.name
        axes = [axis for panel in figure.panels for axis in (panel.x, panel.y)]
        assert any(axis.label or axis.names for axis in axes), figure.name


def test_each_model_has_one_style_in_all_figures(
    case: JobCase, sample_runs: SampleRuns, figures: Sequence[Figure]
) -> None:
    series = {
        model: at for at, model in enumerate(sample_runs.of(case).card()["models"])
    }
    seen = set()
    for figure in figures:
        for panel in figure.panels:
            for mark in panel.marks:
                if isinstance(mark, Heatmap | ReferenceLine):
                    continue
                # of a panel for one model its marks are the model's, or of categories
                for model in (mark.label, panel.title):
                    if model in series and not isinstance(mark.series, Category):
                        where = figure.name, model
                        faint = isinstance(mark, LineSeries) and mark.faint
                        assert faint or mark.series == series[model], where
                        seen.add(model)
                # and no other mark has the style of a model
                if mark.series is not None and not isinstance(mark.series, Category):
                    assert mark.series in series.values(), figure.name
    assert seen == {*series}


def test_nothing_of_a_figure_is_cut_off(figures: Sequence[Figure]) -> None:
    cut, hidden = set(), {}
    for figure in figures:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(RC)
            canvas = draw_figure(figure)
            canvas.draw_without_rendering()  # lays it out
            drawn, (width, height) = canvas.get_tightbbox(), canvas.get_size_inches()
        ends = (-drawn.x0, -drawn.y0, drawn.x1 - width, drawn.y1 - height)
        if max(ends) > SLACK_IN:
            cut.add(figure.name)
        if pairs := overlapping(canvas):
            hidden[figure.name] = pairs
        assert round(width / MM) in {88, 180}
        assert height <= LONGEST_IN
    assert not cut
    assert not hidden
