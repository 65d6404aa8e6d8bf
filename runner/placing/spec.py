"""What an engine needs to know of a shard to start it anywhere: plain data, no keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from store.runs import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSpec:
    """One shard of a run, as an engine starts it on some machine."""

    run_id: str
    index: int  #: counted from 0
    count: int
    words: tuple[str, ...]  #: what follows `siftlog`, but for `--config`
    config: str  #: the run's resolved configuration, TOML
    environment: tuple[str, ...] = ()
    """Names of variables that are passed on from the process that places.

    All others are those of the machine on which the shard runs, keys above all.
    """
    folder: Path  #: of the run, on the shard's machine; its stderr goes there

    @property
    def name(self) -> str:
        """What people call it: its place among all, such as `0/4`."""
        return f"{self.index}/{self.count}"

    @property
    def diagnostics(self) -> Path:
        """Where all of its processes have said what they said."""
        return RunFolder(self.folder).shard(self.index, self.count).diagnostics

    @property
    def configuration(self) -> Path:
        """Where its configuration is written before it starts."""
        return self.folder / f"run.{self.index}-{self.count}.toml"
