"""Holds the typed options of a run: click's options become a `RunRequest` once.

Nothing is validated here: `RunOptions` validates how calls are sent and the job its
settings, each merged with a configuration file. A group has the fields of click's
parameters of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runner.cli.arguments import LEASE_TTL_S, SHIP_EVERY_S, job_settings
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.score.render import FigureFormat
    from runner.shards.engines import EngineName
    from runner.table_rendering import Form


G = TypeVar("G")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSource:
    """Sources of a job's settings."""

    words: tuple[str, ...] = ()  #: flags that are not options of the command
    sets: tuple[str, ...] = ()  #: values of `--set`
    config: Path | None = None

    @property
    def folder(self) -> Path:
        """Folder to which paths of the configuration file are relative."""
        return Path() if self.config is None else self.config.parent

    def typed(self) -> dict[str, list[str]]:
        """Return typed values by setting name.

        Raises:
            UsageError: a word is not a setting.
        """
        return job_settings(self.words, self.sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedOptions:
    """Run options as typed, before they are merged with a file and validated."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Typed values by field of `RunOptions`."""

    @property
    def temperature(self) -> str | None:
        """Sampling temperature, also a setting of some jobs."""
        return self.values.get("temperature")

    def names(self, option: str) -> bool:
        """Return whether *option* was typed."""
        return option in self.values


NOT_TYPED: Final = TypedOptions()
"""For commands without run options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """The part of a run that a process takes, and the location of its log."""

    shard: str | None = None  #: I/N
    local_dir: Path | None = None
    ship: str | None = None  #: folder or address
    ship_every: float = SHIP_EVERY_S
    accept_loss: bool = False
    broker: str | None = None  #: HOST:PORT, set by the process that places shards


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOptions:
    """Engine and number of the shards of a run."""

    engine: EngineName | None = None  #: None: the run is not placed
    shards: int | None = None
    address: str | None = None
    lease_ttl_s: float = LEASE_TTL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Output of a run's end and of its scoring."""

    as_json: bool = False
    form: Form = "text"  #: of tables
    tables: tuple[str, ...] = ()
    no_report: bool = False
    figures: tuple[FigureFormat, ...] = ()  #: formats of files; empty: the default
    output_dir: Path | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Typed options of a run that is started, resumed, estimated or imported."""

    runs_dir: Path
    run_id: str | None = None
    detach: bool = False
    source: SettingsSource
    options: TypedOptions
    part: ShardOptions
    placing: PlacementOptions
    output: OutputOptions

    @classmethod
    def of(cls, words: Sequence[str], parameters: Mapping[str, Any]) -> RunRequest:
        """Build the request from the *parameters* that click resolved.

        Parameters that belong to no other group are run options.

        Args:
            words: the words that are not options of the command.
            parameters: by name, without those that the command reads itself.
        """
        groups = (SettingsSource, ShardOptions, PlacementOptions, OutputOptions)
        grouped = {option.name for kind in (cls, *groups) for option in fields(kind)}
        return cls(
            runs_dir=parameters["runs_dir"],
            run_id=parameters.get("run_id"),
            detach=parameters.get("detach", False),
            source=_group(SettingsSource, {**parameters, "words": tuple(words)}),
            options=TypedOptions(
                values={
                    name: value
                    for name, value in parameters.items()
                    if name not in grouped and value not in {None, ()}
                }
            ),
            part=_group(ShardOptions, parameters),
            placing=_group(PlacementOptions, parameters),
            output=output_options(parameters),
        )


def is_part(request: RunRequest) -> bool:
    """Return whether this process takes a part of a run.

    Raises:
        UsageError: a shard is given with an engine, or `--shards` without one.
    """
    part, placing = request.part, request.placing
    if placing.engine is not None:
        if part.shard is not None:
            raise UsageError(
                "--engine starts all shards of a run, and --shard is one of them: "
                "leave one of the two out."
            )
        return False
    if placing.shards is not None:
        raise UsageError(
            "--shards is how many an --engine places: name one, or take a part of the "
            "run with --shard i/n."
        )
    return any((part.shard, part.local_dir, part.ship))


def output_options(parameters: Mapping[str, Any]) -> OutputOptions:
    """Return the output options among *parameters*."""
    return _group(OutputOptions, parameters)


def _group(kind: type[G], parameters: Mapping[str, Any]) -> G:
    """Build a group of options; missing parameters keep their defaults."""
    names = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: parameters[name] for name in names if name in parameters})
