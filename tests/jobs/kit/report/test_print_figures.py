"""Figures as a paper needs them: widths, letters, fonts, colours, order, bytes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas
from matplotlib.image import imread
from matplotlib.text import Text

from jobs.kit.headline_chart import headline_figure
from jobs.kit.report.figures import LONGEST_IN, MM, draw_figure, write_figures
from jobs.kit.report.plot_marks import (
    CATEGORY_STYLES,
    DPI,
    MODEL_STYLES,
    RC,
    series_style,
)
from runner.score.render import headlines
from runner.scorecard import (
    Axis,
    Bars,
    Category,
    Figure,
    LineSeries,
    Metric,
    Panel,
    Points,
    ReferenceLine,
    Scorecard,
)
from tests.colour_vision import VISIONS, contrast, distance, lab
from tests.drawn_text import overlapping
from tests.jobs.kit.report.reported import FIGURES

CURVE = Panel(
    marks=(LineSeries(x=(0, 1), y=(0, 1), label="lab/m", series=0),),
    x=Axis(label="share", lo=0, hi=1),
    y=Axis(label="rate", lo=0, hi=1),
)
NARROW = Figure(name="narrow", title="N", caption="N.", panels=(CURVE,))
WIDE = Figure(name="wide", title="W", caption="W.", panels=(CURVE, CURVE), columns=2)

LONG = "a-laboratory/a-model-with-a-long-name-{}b-instruct-2025-09-29"


def canvas_of(figure: Figure) -> Canvas:
    """A figure that is laid out as its files are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        canvas = draw_figure(figure)
        canvas.draw_without_rendering()
    return canvas


@pytest.mark.parametrize(("figure", "mm"), [(NARROW, 88), (WIDE, 180)])
def test_a_figure_is_as_wide_as_a_column_or_a_page(
    tmp_path: Path, figure: Figure, mm: int
) -> None:
    write_figures([figure], tmp_path, ("svg", "png", "pdf"))
    points = 72 * mm * MM
    root = ET.parse(tmp_path / f"{figure.name}.svg").getroot()  # noqa: S314 - ours
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(points)
    pdf = (tmp_path / f"{figure.name}.pdf").read_bytes()
    (box,) = re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+) ", pdf)
    assert float(box) == pytest.approx(points, abs=0.01)
    pixels = imread(tmp_path / f"{figure.name}.png").shape[1]
    assert pixels == pytest.approx(DPI * mm * MM, abs=1)
    assert DPI >= 300


def test_a_pdf_embeds_its_font_and_its_text_can_be_searched(tmp_path: Path) -> None:
    write_figures(FIGURES, tmp_path, ("pdf",))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "criteria.pdf",
        "roc.pdf",
    ]
    pdf = (tmp_path / "roc.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Subtype /TrueType" in pdf or b"/Subtype /CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    # glyphs can be read back as characters
    assert b"/ToUnicode" in pdf
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    pages = [zlib.decompress(each) for each in streams if each[:1] == b"\x78"]
    assert any(re.search(rb"\bBT\b.*\bT[jJ]\b", each, re.DOTALL) for each in pages)


def test_a_pdf_says_nothing_of_the_time_and_of_its_maker(tmp_path: Path) -> None:
    write_figures(FIGURES[:1], tmp_path, ("pdf",))
    pdf = (tmp_path / "roc.pdf").read_bytes()
    for word in (b"CreationDate", b"ModDate", b"Producer", b"Creator", b"atplotlib"):
        assert word not in pdf


def test_letters_have_seven_to_nine_points_and_none_is_a_title() -> None:
    for figure in (NARROW, WIDE, *FIGURES):
        canvas = canvas_of(figure)
        texts = [text for text in canvas.findobj(Text) if text.get_text()]  # type: ignore[attr-defined]
        assert {7 <= text.get_fontsize() <= 9 for text in texts} == {True}
        assert figure.title not in {text.get_text() for text in texts}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(
    "styles", [MODEL_STYLES, CATEGORY_STYLES], ids=["models", "categories"]
)
def test_any_two_colours_differ_for_every_eye(
    styles: Sequence[tuple[str, ...]], vision: str
) -> None:
    seen = [lab(style[0], vision) for style in styles]
    assert min(distance(a, b) for a, b in combinations(seen, 2)) >= 20


def test_a_model_can_be_seen_on_white_and_has_no_colour_of_a_category() -> None:
    models = {style.color for style in MODEL_STYLES}
    assert all(contrast(color, "#FFFFFF") >= 3 for color in models)
    categories = {series_style(Category(index)).color for index in range(9)}
    assert not models & {*categories, series_style(None).color}


def test_many_models_differ_in_colour_or_marker() -> None:
    looks = {(series_style(n).color, series_style(n).marker) for n in range(24)}
    assert len(looks) == 24
    # without colour the first of them still differ
    assert len({style.marker for style in MODEL_STYLES}) == len(MODEL_STYLES)
    assert len({str(style.line) for style in MODEL_STYLES}) == len(MODEL_STYLES)


def _of_all(models: Sequence[str]) -> Iterator[Figure]:
    """A figure of all models, and one of every other model in another order."""
    for name, series in (("all", range(len(models))), ("some", range(1, 6, 2)[::-1])):
        marks = tuple(
            Points(x=(0.5,), y=(row,), label=models[index], series=index)
            for row, index in enumerate(series)
        )
        rule = ReferenceLine(way="vertical", at=0.5, label="chance")
        panel = Panel(
            marks=(rule, *marks),
            x=Axis(label="rate", lo=0, hi=1),
            y=Axis(names=tuple(models[index] for index in series)),
        )
        yield Figure(name=name, title="T", caption="C.", panels=(panel,))


def test_a_model_keeps_its_colour_and_legends_have_the_order_of_the_report() -> None:
    models = [f"m{index}" for index in range(6)]
    colors: dict[str, set[str]] = {}
    legends = []
    for figure in _of_all(models):
        canvas = canvas_of(figure)
        (axes,) = canvas.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            colors.setdefault(label, set()).add(to_hex(line.get_color()))  # type: ignore[attr-defined]
        legends.append([text.get_text() for text in canvas.legends[0].get_texts()])
    assert legends == [[*models, "chance"], ["m1", "m3", "m5", "chance"]]
    assert all(len(drawn) == 1 for drawn in colors.values())
    assert len({*map(min, colors.values())}) == len(models) + 1


def _compared(models: int) -> Figure:
    """Rates and counts of so many models with long names."""
    names = [LONG.format(index) for index in range(models)]
    rows = tuple(f"a class of items, number {row}\nn = {row:,}" for row in range(4))
    rates = Panel(
        title=names[-1],
        marks=tuple(
            Points(
                x=(0.2, None, 0.4, 1.0),
                y=tuple(row + 0.1 * index for row in range(4)),
                label=name,
                series=index,
            )
            for index, name in enumerate(names[:6])
        ),
        x=Axis(label="rate", lo=0, hi=1),
        y=Axis(names=rows),
        row_notes=("0.123 [0.001, 0.999]",) * 4,
    )
    counts = Panel(
        title=names[0],
        marks=(Bars(values=(12_000, 7, 3)),),
        x=Axis(names=("a long name of a step", "another", "the last of them")),
        y=Axis(label="items", lo=0),
    )
    return Figure(
        name="f", title="T", caption="C.", panels=(rates, counts, rates), columns=3
    )


@pytest.mark.parametrize("models", [1, 2, 5, 12])
def test_no_label_hides_another_at_any_number_of_models(models: int) -> None:
    names = [LONG.format(index) for index in range(models)]
    paths = ("recall", "precision", "f1", "a metric with a long name, pooled")
    metrics = [
        Metric(path=path, value=0.5, n=1000, lo=0.1, hi=0.9, is_headline=True)
        for path in paths
    ]
    card = Scorecard(models=dict.fromkeys(names, tuple(metrics)), summary="")
    headline = headline_figure(card, headlines(card))
    assert headline is not None
    for figure in (headline, _compared(models)):
        canvas = canvas_of(figure)
        assert overlapping(canvas) == []
        assert canvas.get_size_inches()[1] <= LONGEST_IN


def test_models_that_differ_in_the_middle_of_their_names_have_titles_that_differ() -> (
    None
):
    panels = tuple(
        Panel(title=LONG.format(size), marks=(), x=Axis(), y=Axis()) for size in (7, 70)
    )
    figure = Figure(name="f", title="T", caption="C.", panels=panels, columns=2)
    titles = [axes.get_title(loc="left") for axes in canvas_of(figure).axes]
    assert [title.replace("\n", "") for title in titles] == [
        LONG.format(size) for size in (7, 70)
    ]


def test_rows_that_panels_share_are_named_once_in_a_line() -> None:
    row = Panel(marks=(), x=Axis(label="x"), y=Axis(names=("a", "b")))
    figure = Figure(name="f", title="T", caption="C.", panels=(row,) * 4, columns=2)
    labels = [
        [text.get_text() for text in axes.get_yticklabels()]
        for axes in canvas_of(figure).axes
    ]
    assert labels == [["a", "b"], ["", ""], ["a", "b"], ["", ""]]


def test_a_row_in_which_nothing_is_defined_says_so_once() -> None:
    points = tuple(
        Points(x=(None, x), y=(0, 1), series=index)
        for index, x in enumerate((0.5, None))
    )
    panel = Panel(marks=points, x=Axis(lo=0, hi=1), y=Axis(names=("a", "b")))
    figure = Figure(name="f", title="T", caption="C.", panels=(panel,))
    (axes,) = canvas_of(figure).axes
    assert [round(text.xy[1]) for text in axes.texts] == [0, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_squares_with_long_titles_and_a_legend_are_not_cut_off(columns: int) -> None:
    panel = replace(
        CURVE,
        title=f"recorded:{LONG.format(70)}",
        square=True,
        marks=tuple(
            LineSeries(x=(0, 1), y=(0, 1), label=LONG.format(index), series=index)
            for index in range(6)
        ),
    )
    figure = Figure(
        name="f", title="T", caption="C.", panels=(panel,) * columns, columns=columns
    )
    canvas = canvas_of(figure)
    drawn, (width, height) = canvas.get_tightbbox(), canvas.get_size_inches()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) >= 0
