"""What an engine needs to know of a shard to start it anywhere: plain data, no keys."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from string import Template

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
    runs_dir: Path  #: folder of the runs, if all machines share it
    local_dir: str | None = None
    """Folder of the runs on a disk of the shard's machine; `$NAME` in it is a variable
    of that machine."""

    @property
    def name(self) -> str:
        """What people call it: its place among all, such as `0/4`."""
        return f"{self.index}/{self.count}"

    @property
    def own_runs_dir(self) -> Path | None:
        """What `local_dir` comes to on this machine.

        Raises:
            OSError: it names a variable that is not set here.
        """
        if self.local_dir is None:
            return None
        try:
            return Path(Template(self.local_dir).substitute(os.environ))
        except (KeyError, ValueError) as error:
            raise OSError(
                f"--local-dir {self.local_dir} names a variable that is not set"
            ) from error

    @property
    def folder(self) -> Path:
        """The run's, on this machine; what the shard says on stderr goes there."""
        return (self.own_runs_dir or self.runs_dir) / self.run_id

    @property
    def diagnostics(self) -> Path:
        """Where all of its processes have said what they said."""
        return RunFolder(self.folder).shard(self.index, self.count).diagnostics

    @property
    def configuration(self) -> Path:
        """Where its configuration is written before it starts."""
        return self.folder / f"run.{self.index}-{self.count}.toml"
