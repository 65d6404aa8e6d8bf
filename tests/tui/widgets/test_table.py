"""The table draws what it holds, asks for what it shows, and moves nothing else."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual import on
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from tests.tui.hostile import HOSTILE
from tui.render.colours import DARK
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.render.layout import TableColumn
from tui.widgets.table import PagedTable

COLUMNS: tuple[TableColumn[str], ...] = (
    TableColumn(title="name", width=20, text=str, grows=True),
    TableColumn(
        title="size",
        width=8,
        text=lambda row: f"{len(row):,}",
        tone=lambda row: "failed" if "bad" in row else "done",
        is_right=True,
    ),
)
SIZE = (60, 12)
ROOM = SIZE[1] - 1


class Shown(App[None]):
    """A table alone; it answers what is asked unless it is told not to."""

    def __init__(self, count: int = 1_000_000, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.register_theme(DARK.theme())
        self.theme = DARK.name
        self.table = PagedTable(COLUMNS, glyphs)
        self.count = count
        self.answers = True
        self.rows: dict[int, str] = {}
        self.said: list[
            PagedTable.PageRequested | PagedTable.Chosen | PagedTable.HeadClicked
        ] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return DARK.states.variables()

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.focus()
        self.table.relist(range(1, self.count + 1))

    @on(PagedTable.PageRequested)
    def _wanted(self, message: PagedTable.PageRequested) -> None:
        self.said.append(message)
        if self.answers:
            rows = {n: self.rows.get(n, f"row {n}") for n in message.ask.numbers}
            self.table.put(message.ask, rows)

    @on(PagedTable.Chosen)
    @on(PagedTable.HeadClicked)
    def _noted(self, message: PagedTable.Chosen | PagedTable.HeadClicked) -> None:
        self.said.append(message)

    def lines(self) -> list[str]:
        return [self.table.render_line(y).text for y in range(SIZE[1])]


async def _settled(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.pause()


@pytest.mark.asyncio
async def test_a_million_rows_are_shown_by_reading_three_pages() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        await _settled(pilot)
        lines = app.lines()
        assert lines[0].split() == ["name", "size"]
        assert lines[1].split() == ["▸", "row", "1", "5"]
        assert lines[11].split() == ["row", "11", "6"]
        assert len(app.said) == 3  # this page, the next and the last


@pytest.mark.asyncio
async def test_only_lines_whose_text_has_changed_are_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ages: dict[str, int] = {}
    age = TableColumn(
        title="age", width=8, text=lambda row: f"{ages.get(row, 0)} s", grows=True
    )
    app = Shown()
    app.table = PagedTable((age,), UNICODE)
    async with app.run_test(size=SIZE) as pilot:
        await _settled(pilot)
        drawn: list[Region] = []
        monkeypatch.setattr(app.table, "refresh", lambda *where: drawn.extend(where))
        app.table.redraw_changes()
        assert drawn == []
        ages["row 3"] = 5
        app.table.redraw_changes()
        assert drawn == [Region(0, 3, SIZE[0], 1)]


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        (["j", "j"], 3),
        (["down", "k"], 1),
        (["G"], 1_000_000),
        (["G", "up"], 999_999),
        (["end", "g"], 1),
        (["ctrl+d"], 1 + ROOM // 2),
        (["ctrl+d", "ctrl+u"], 1),
        (["pagedown"], ROOM),
        (["pagedown", "pageup"], 1),
    ],
)
@pytest.mark.asyncio
async def test_keys_move_the_cursor_and_it_is_in_view(
    keys: list[str], number: int
) -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*keys)
        await _settled(pilot)
        assert app.table.chosen == number
        marked = [line for line in app.lines() if line.startswith(" ▸ ")]
        assert [line.split()[2] for line in marked] == [str(number)]


@pytest.mark.asyncio
async def test_what_is_not_read_yet_is_dots_and_keys_work_all_the_same() -> None:
    app = Shown()
    app.answers = False
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("j", "j", "G", "k")
        assert app.table.chosen == 999_999
        assert all("···" in line for line in app.lines()[1:])
        assert len(app.said) == 2
        wanted = app.said[1]
        assert isinstance(wanted, PagedTable.PageRequested)
        app.answers = True
        app.table.give_up(wanted.ask)
        await pilot.press("j")
        await _settled(pilot)
        assert "row 1000000" in app.lines()[ROOM]


@pytest.mark.asyncio
async def test_hostile_texts_stay_in_their_cells() -> None:
    app = Shown(len(HOSTILE))
    app.rows = dict(enumerate(HOSTILE, 1))
    async with app.run_test(size=(60, len(HOSTILE) + 1)) as pilot:
        await _settled(pilot)
        for y in range(len(HOSTILE) + 1):
            line = app.table.render_line(y)
            assert cell_len(line.text) == 60
            assert line.text.isprintable()
        assert "[/INST]" in app.table.render_line(1).text
        assert "[@click=app.quit]x[/]" in app.table.render_line(2).text


@pytest.mark.asyncio
async def test_rows_that_come_never_move_those_in_view() -> None:
    app = Shown(50)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+d", "ctrl+d", "ctrl+d")
        await _settled(pilot)
        before, top = app.lines(), app.table.scroll_offset.y
        app.table.extend(range(51, 500))
        await _settled(pilot)
        assert app.lines() == before
        app.table.exchange(range(-1_000, 500))
        await _settled(pilot)
        assert app.lines() == before
        assert app.table.scroll_offset.y == top + 1_001


@pytest.mark.asyncio
async def test_another_list_is_shown_from_its_beginning() -> None:
    app = Shown(500)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("G")
        app.table.relist(range(300, 600))
        await _settled(pilot)
        assert app.lines()[1].split() == ["▸", "row", "300", "7"]


@pytest.mark.asyncio
async def test_expired_rows_are_exchanged_in_place() -> None:
    app = Shown(5)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("j")
        app.rows = {2: "bad news"}
        app.table.expire()
        await _settled(pilot)
        assert app.lines()[2].split() == ["▸", "bad", "news", "8"]
        assert app.table.row == "bad news"


@pytest.mark.asyncio
async def test_the_mouse_chooses_opens_and_sorts() -> None:
    app = Shown(50)
    async with app.run_test(size=SIZE) as pilot:
        app.said.clear()
        await pilot.click(PagedTable, offset=(10, 4))
        assert app.table.chosen == 4
        await pilot.click(PagedTable, offset=(10, 4), times=2)
        await pilot.click(PagedTable, offset=(5, 0))
        await pilot.click(PagedTable, offset=(55, 0))
        await _settled(pilot)
        chosen = [
            said.number for said in app.said if isinstance(said, PagedTable.Chosen)
        ]
        titles = [s.title for s in app.said if isinstance(s, PagedTable.HeadClicked)]
        assert chosen == [4]
        assert titles == ["name", "size"]


@pytest.mark.asyncio
async def test_the_wheel_scrolls_and_reads_what_comes_into_view() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.table.scroll_to(y=500_000, animate=False, immediate=True)
        await _settled(pilot)
        assert "row 500001" in app.lines()[1]
        assert app.table.chosen == 1


@pytest.mark.asyncio
async def test_a_smaller_screen_keeps_the_cursor_in_view() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("pagedown")
        await pilot.resize_terminal(40, 6)
        await _settled(pilot)
        marked = [app.table.render_line(y).text for y in range(6)]
        assert any(line.startswith(" ▸ row 11") for line in marked)
        assert all(cell_len(line) == 40 for line in marked)


@pytest.mark.asyncio
async def test_an_empty_table_says_why() -> None:
    app = Shown(0)
    async with app.run_test(size=SIZE) as pilot:
        app.table.explain("No task fits [/INST].")
        await pilot.press("j", "G", "enter")
        assert "No task fits [/INST]." in app.lines()[1]
        app.table.explain("word " * 20 + "x clears the filter")
        await pilot.pause()
        assert app.lines()[3].strip() == "the filter", "nothing is cut off"
        assert app.table.chosen is None
        assert not app.said


@pytest.mark.asyncio
async def test_rows_at_hand_need_nobody_to_read_them() -> None:
    app = Shown(0)
    async with app.run_test(size=SIZE) as pilot:
        app.table.show({7: "seven", 9: "nine"})
        await pilot.press("j")
        assert app.table.row == "nine"
        assert not app.said


@pytest.mark.asyncio
async def test_plain_signs_are_all_that_a_plain_terminal_gets() -> None:
    app = Shown(len(HOSTILE), ASCII)
    app.rows = dict(enumerate(HOSTILE, 1))
    async with app.run_test(size=SIZE) as pilot:
        await _settled(pilot)
        assert "".join(app.lines()).isascii()
        assert {len(line) for line in app.lines()} == {SIZE[0]}
