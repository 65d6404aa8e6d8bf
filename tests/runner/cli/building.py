"""A job whose `prepare` does all that one may, and which cannot run on nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.errors import UsageError
from tests.runner.toy_jobs import ToyJob, ToySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a subcommand that builds nothing gives."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built(Counted):
    """What a subcommand that builds a file gives."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Built):
    """What a subcommand that finds a share gives."""

    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a subcommand that takes files gives."""

    @staticmethod
    def read(files: tuple[Path, ...], progress: Callable[[str], None]) -> Counted:
        for path in files:
            progress(f"taking {path}")
        names = [str(path) for path in files]
        return Counted(text=" ".join(names), json={"files": names})


class BuildingJob(ToyJob):
    """Says how many items there are, writes them, checks them, or takes files."""

    name = "building"
    prepare: Mapping[str, object]

    def __init__(self) -> None:
        super().__init__()
        self.prepare = {
            "count": self._count,
            "build": self._build,
            "check": self._check,
            "take": lambda _: Taken(),
        }

    @staticmethod
    def require(settings: ToySettings) -> None:
        if settings.items == 0:
            raise UsageError("A run needs --items.")

    @staticmethod
    def _count(settings: ToySettings) -> Counted:
        return Counted(text=f"{settings.items} items", json={"items": settings.items})

    @staticmethod
    def _build(settings: ToySettings) -> Built:
        lines = tuple(f"item é{number}" for number in range(settings.items))
        return Built(text="built", json={"items": settings.items}, lines=lines)

    @staticmethod
    def _check(settings: ToySettings) -> Checked:
        share = settings.items / 10 if settings.items else None
        lines = (f"share {share}",)
        return Checked(text="checked", json={"share": share}, lines=lines, share=share)


job = BuildingJob()
