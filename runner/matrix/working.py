"""Carries the runs of a matrix out, all at once, in one event loop.

Each is started, or taken up, as it would be alone; what they share is their `Company`.
A run that breaks leaves the others at work, unless it is to end them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.control.ending import Ended
from runner.control.signals import obey_signals
from runner.errors import RunnerError
from runner.launching import launch
from runner.launching.company import Company
from runner.launching.group import elsewhere
from runner.launching.shell import Shell
from runner.matrix.cell import Cell
from runner.matrix.file import MatrixFile
from runner.money.budget import Budget
from store.database import open_reader
from store.errors import StoreError
from store.read.status import status
from store.task import pico


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of one run of a matrix."""

    cell: Cell
    ended: Ended | None  #: None: it broke
    why: str | None = None  #: what broke it, in a sentence

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed in it, whether or not it is over."""
        if self.ended is None or self.ended.outcome == "endpoint":
            return False
        with open_reader(self.cell.folder.log) as reader:
            return not status(reader).tasks.failed


Shells = Callable[[Cell], Shell]


async def carry_out(
    file: MatrixFile,
    cells: Sequence[Cell],
    shell: Shells,
    tell: Callable[[str], None],
    *,
    fail_fast: bool,
) -> list[Came]:
    """Run what is left of a matrix; what came of each, in the order of *cells*.

    Args:
        file: the matrix.
        cells: its runs that are not over.
        shell: what surrounds each of them.
        tell: takes a sentence about all of them.
        fail_fast: whether the first run in which something failed drains the others.
    """
    company = Company(file.limits, _budget(file, cells))
    obey_signals(company, tell)
    came: dict[str, Came] = {}

    async def carry(cell: Cell) -> None:
        run = came[cell.folder.run_id] = await _carry(file, cell, company, shell(cell))
        if fail_fast and not run.is_clean:
            tell(f"{cell.folder.run_id} failed; the other runs finish their calls.")
            company.drain()

    async with asyncio.TaskGroup() as runs:
        for cell in cells:
            runs.create_task(carry(cell))
    return [came[cell.folder.run_id] for cell in cells]


def _budget(file: MatrixFile, cells: Sequence[Cell]) -> Budget | None:
    """The one budget, less what all runs of the group have taken of it before."""
    if file.options.budget is None or not cells:
        return None
    before = elsewhere(cells[0].folder.path.parent, file.group)
    return Budget(
        pico(file.options.budget),
        spent_pico=before.spent_pico,
        possible_pico=before.possible_pico,
    )


async def _carry(file: MatrixFile, cell: Cell, company: Company, shell: Shell) -> Came:
    try:
        if cell.state is None:
            ended = await launch.start(
                cell.folder,
                cell.work,
                cell.options,
                shell,
                company=company,
                group=file.group,
            )
        else:
            ended = await launch.resume(
                cell.folder,
                cell.work,
                cell.options,
                shell,
                accept_changes=False,
                company=company,
            )
    except (RunnerError, StoreError) as error:
        return Came(cell=cell, ended=None, why=str(error))
    except Exception as error:  # noqa: BLE001 - one job's mistake is not the others'
        return Came(cell=cell, ended=None, why=f"{type(error).__name__}: {error}")
    return Came(cell=cell, ended=ended)
