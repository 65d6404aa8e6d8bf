"""What people hold back: the run, a stage, a model, or a stage of a model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from store.run_state import RunState
from store.statements import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What a person holds back; None: every stage, every model."""

    stage: str | None
    model: str | None
    by: str

    @property
    def scope(self) -> tuple[str | None, str | None]:
        """Its stage and model."""
        return self.stage, self.model

    def holds(self, stage: str, model: str) -> bool:
        """Whether nothing of this stage and model is started."""
        return self.stage in {None, stage} and self.model in {None, model}

    def __str__(self) -> str:
        """What is held back, and by whom, in a few words."""
        names = [
            f"{what} {name}"
            for what, name in (("stage", self.stage), ("model", self.model))
            if name is not None
        ]
        return f"{' of '.join(names) or 'the run'} (by {self.by})"


def pauses(conn: sqlite3.Connection, run: RunState) -> tuple[Pause, ...]:
    """What is held back at present, the whole run first."""
    whole = [] if run.paused_by is None else [("", "", run.paused_by)]
    return tuple(
        Pause(stage=stage or None, model=model or None, by=by)
        for stage, model, by in (*whole, *conn.execute(SQL["rows_pause"]).fetchall())
    )


def paused_by(
    held: Sequence[Pause], open_lanes: Iterable[tuple[str, str]]
) -> str | None:
    """Who holds the run back as a whole: by one pause, or lane by lane.

    Args:
        held: the pauses.
        open_lanes: stage and model of the tasks that are open.
    """
    whole = [pause.by for pause in held if pause.scope == (None, None)]
    lanes = list(open_lanes)
    is_held = all(any(pause.holds(*lane) for pause in held) for lane in lanes)
    if lanes and is_held:
        whole += [pause.by for pause in held]
    return whole[0] if whole else None
