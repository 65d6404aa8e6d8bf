"""Environments of packages whose pins conflict with siftlog's, or that judge it."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_QUIET = ("--quiet", "--disable-pip-version-check")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment in the project's, which is kept out of the repository."""

    name: str
    constraints: Path  #: versions of all its packages
    packages: tuple[str, ...]
    finish: Callable[[Path], object] = lambda _: None  #: adds what is no package there

    @property
    def home(self) -> Path:
        return Path(sys.prefix) / self.name

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    def is_made(self) -> bool:
        """Whether it is there, with the versions of today's constraints."""
        ready = self.home / ".ready"
        return ready.exists() and ready.read_text("utf-8") == self._wanted()

    def make(self) -> None:
        """Make it unless it is there; several processes make it once."""
        with self.home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.is_made():
                return
            venv = [sys.executable, "-m", "venv", "--clear", self.home]
            subprocess.run(venv, check=True)
            words = [*_QUIET, "-c", self.constraints, *self.packages]
            subprocess.run([self.python, "-m", "pip", "install", *words], check=True)
            self.finish(self.home)
            (self.home / ".ready").write_text(self._wanted(), "utf-8")

    def _wanted(self) -> str:
        return hashlib.sha256(self.constraints.read_bytes()).hexdigest()
