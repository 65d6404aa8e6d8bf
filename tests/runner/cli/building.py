"""A job whose `prepare` builds a file, and which cannot run on nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runner.errors import UsageError
from runner.testing import ToyJob, ToySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a subcommand that builds nothing gives."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built(Counted):
    """What a subcommand that builds a file gives."""

    lines: tuple[str, ...]


class BuildingJob(ToyJob):
    """Two subcommands: `count` says how many items there are, `build` writes them."""

    name = "building"
    prepare: Mapping[str, object]

    def __init__(self) -> None:
        super().__init__()
        self.prepare = {"count": self._count, "build": self._build}

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


job = BuildingJob()
