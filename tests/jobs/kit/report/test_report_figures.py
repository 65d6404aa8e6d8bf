"""Figures as files: of every mark, with content, and the same bytes every time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

from jobs.kit.report.figures import draw_figure, write_figures
from jobs.kit.report.plot_marks import LABEL, legend_label, safe_text
from runner.scorecard import Axis, Bars, Figure, Histogram, LineSeries, Panel, Points
from tests.jobs.kit.report.reported import FIGURES

ROOT = Path(__file__).resolve().parents[4]
PATH = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _panel(*marks: LineSeries, **axes: Axis) -> Panel:
    return Panel(marks=marks, x=axes.get("x", Axis()), y=axes.get("y", Axis()))


def test_every_figure_is_a_vector_and_a_raster_picture_with_content(
    tmp_path: Path,
) -> None:
    write_figures(FIGURES, tmp_path)
    assert sorted(_files(tmp_path)) == [
        *("criteria.png", "criteria.svg", "roc.png", "roc.svg")
    ]
    for figure in FIGURES:
        pixels = imread(tmp_path / f"{figure.name}.png")
        assert min(pixels.shape[:2]) > 300
        colors = {tuple(pixel) for row in pixels[::3, ::3, :3] for pixel in row}
        assert len(colors) > 20
        assert (tmp_path / f"{figure.name}.svg").read_bytes().count(b"<path ") > 20


@pytest.mark.parametrize("seed", ["1", "77"])
def test_figures_are_the_same_bytes_in_every_process(tmp_path: Path, seed: str) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from jobs.kit.report.figures import write_figures; "
        "from tests.jobs.kit.report.reported import FIGURES; "
        "write_figures(FIGURES, Path(sys.argv[1]), ('svg', 'png', 'pdf'))"
    )
    # a person's own style, and another language, change nothing
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9\nfont.size: 30\n")
    subprocess.run(
        [sys.executable, "-W", "error", "-c", script, tmp_path / "there"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": PATH,
            "LC_ALL": "C.UTF-8",
            "TZ": "Asia/Tokyo",
            "SOURCE_DATE_EPOCH": f"{seed}00000",
        },
        check=True,
        timeout=60,
    )
    write_figures(FIGURES, tmp_path / "here", ("svg", "png", "pdf"))
    assert _files(tmp_path / "there") == _files(tmp_path / "here")


def test_a_machine_without_a_place_for_fonts_is_not_told_of_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    script = (
        "import sys; from pathlib import Path; "
        "from tests.jobs.kit.report.reported import written; written(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "scoring"],
        cwd=ROOT,
        env={
            **os.environ,
            "MPLCONFIGDIR": str(tmp_path / "file" / "under"),
            "PYTHONPATH": PATH,
        },
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b""
    assert (tmp_path / "scoring" / "figures" / "roc.png").exists()


def test_the_vector_picture_holds_no_date(tmp_path: Path) -> None:
    write_figures(FIGURES[:1], tmp_path)
    text = (tmp_path / "roc.svg").read_text()
    assert "dc:date" not in text
    assert "<text" not in text


def test_a_change_of_one_number_changes_the_picture(tmp_path: Path) -> None:
    pictures = []
    for value in (0.5, 0.6):
        figure = Figure(
            name="f",
            title="",
            caption="",
            panels=(_panel(LineSeries(x=(0, 1), y=(0, value)), y=Axis(lo=0, hi=1)),),
        )
        write_figures([figure], tmp_path)
        pictures.append(_files(tmp_path))
    assert pictures[0]["f.svg"] != pictures[1]["f.svg"]
    assert pictures[0]["f.png"] != pictures[1]["f.png"]


def test_faint_lines_are_thinner_than_the_one_that_counts() -> None:
    marks = (LineSeries(x=(0, 1), y=(0, 1), faint=True), LineSeries(x=(0, 1), y=(1, 1)))
    figure = Figure(name="f", title="", caption="", panels=(_panel(*marks),))
    many, one = draw_figure(figure).axes[0].lines
    assert many.get_linewidth() < one.get_linewidth()
    assert many.get_zorder() < one.get_zorder()


def test_square_panels_side_by_side_leave_no_room_above_them() -> None:
    square = Panel(
        marks=(LineSeries(x=(0, 1), y=(0, 1)),), x=Axis(), y=Axis(), square=True
    )
    pair = Figure(name="f", title="", caption="", panels=(square, square), columns=2)
    width, height = draw_figure(pair).get_size_inches()
    assert height < 0.6 * width


def test_counts_have_no_number_between_two() -> None:
    bars = Panel(marks=(Bars(values=(1, 2)),), x=Axis(names=("a", "b")), y=Axis(lo=0))
    shares = Panel(
        marks=(Bars(values=(0.5, 0.25)),), x=Axis(names=("a", "b")), y=Axis(lo=0)
    )
    figure = Figure(name="f", title="", caption="", panels=(bars, shares), columns=2)
    counted, measured = (
        axes.get_yticks().tolist() for axes in draw_figure(figure).axes
    )
    assert all(tick == round(tick) for tick in counted)
    assert any(tick != round(tick) for tick in measured)


def test_nothing_but_undefined_numbers_draws_an_empty_panel(tmp_path: Path) -> None:
    figure = Figure(
        name="f",
        title="",
        caption="",
        panels=(_panel(LineSeries(x=(None,), y=(None,))),),
    )
    write_figures([figure], tmp_path)
    assert len(_files(tmp_path)) == 2


def test_letters_that_the_font_lacks_and_formulas_are_shown_not_run() -> None:
    assert safe_text("a\x1b[2Jb") == "a\ufffd[2Jb"
    assert safe_text("\u4e2d$x^2$") == "\ufffd$x^2$"
    assert legend_label("_hidden") == "hidden"
    assert legend_label("") is None
    assert len(legend_label("x" * 100) or "") == LABEL
    # models whose names begin alike stay two
    assert {legend_label("lab/" + "x" * 60 + end) for end in ("-8b", "-70b")} == {
        "lab/xxxxxxxxxx\u2026xxxxxxxxxxxxxxxxxxxxxxxxxx-8b",
        "lab/xxxxxxxxxx\u2026xxxxxxxxxxxxxxxxxxxxxxxxx-70b",
    }


def test_text_that_looks_like_a_formula_draws_no_formula(tmp_path: Path) -> None:
    broken = Figure(
        name="f",
        title="",
        caption="",
        panels=(
            _panel(LineSeries(x=(0,), y=(0,), label=r"$\frac{$"), x=Axis(label="$_$")),
        ),
    )
    write_figures([broken], tmp_path)
    assert (tmp_path / "f.svg").stat().st_size > 1_000


@pytest.mark.parametrize("name", ["", "../x", "a b", "A", "x/y", "-x", "a" * 81])
def test_a_figure_whose_name_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be called"):
        Figure(name=name, title="", caption="", panels=(_panel(),))


def test_a_figure_without_a_panel_is_refused() -> None:
    with pytest.raises(ValueError, match="no panel"):
        Figure(name="f", title="", caption="", panels=())


def test_an_axis_that_ends_where_it_begins_is_drawn_with_room(tmp_path: Path) -> None:
    counted = Axis(label="papers", lo=0, hi=0)
    place = Axis(lo=1, hi=1)
    empty = Panel(marks=(Histogram(edges=(0, 1), counts=(0,)),), x=Axis(), y=counted)
    noted = Panel(marks=(Points(x=(1,), y=(0,), notes=("here",)),), x=place, y=counted)
    figure = Figure(name="f", title="f", caption="f", panels=(empty, noted))
    write_figures([figure], tmp_path)
    assert len(_files(tmp_path)) == 2
