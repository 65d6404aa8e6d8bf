"""Environments of packages whose pins conflict with siftlog's, or that judge it."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_QUIET = ("--quiet", "--disable-pip-version-check")


@dataclass(frozen=True, kw_only=True)
class _Installed(ABC):
    """A folder in the project's environment, which is kept out of the repository."""

    name: str

    @property
    def home(self) -> Path:
        return Path(sys.prefix) / self.name

    def is_made(self) -> bool:
        """True if it exists with the versions that are wanted today."""
        ready = self.home / ".ready"
        return ready.exists() and ready.read_text("utf-8") == self._wanted()

    def make(self) -> None:
        """Make it unless it is there; several processes make it once."""
        with self.home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.is_made():
                return
            self._install()
            (self.home / ".ready").write_text(self._wanted(), "utf-8")

    @abstractmethod
    def _install(self) -> None:
        """Install the packages."""

    @abstractmethod
    def _wanted(self) -> str:
        """Return a digest of the versions."""


@dataclass(frozen=True, kw_only=True)
class Environment(_Installed):
    """A virtual environment of Python."""

    constraints: Path  #: versions of all its packages
    packages: tuple[str, ...]
    finish: Callable[[Path], object] = lambda _: None  #: adds what is no package there

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    def _install(self) -> None:
        venv = [sys.executable, "-m", "venv", "--clear", self.home]
        subprocess.run(venv, check=True)
        words = [*_QUIET, "-c", self.constraints, *self.packages]
        subprocess.run([self.python, "-m", "pip", "install", *words], check=True)
        self.finish(self.home)

    def _wanted(self) -> str:
        return hashlib.sha256(self.constraints.read_bytes()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class NodePackages(_Installed):
    """Packages of npm, whose install scripts are not run."""

    packages: tuple[str, ...]  #: with versions
    natives: tuple[str, ...] = ()
    """Packages with compiled code, with `{platform}` for that of this machine."""

    @staticmethod
    def is_possible() -> bool:
        """True if npm and node are installed."""
        return bool(shutil.which("npm") and shutil.which("node"))

    def command(self, name: str) -> list[str | Path]:
        """Return the words that start a program of the packages."""
        return ["node", self.home / "node_modules" / ".bin" / name]

    def _install(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        # optional packages are of many providers and would take some gigabytes
        words = ["--prefix", self.home, "--ignore-scripts", "--omit=optional"]
        words += ["--no-audit", "--no-fund", "--silent", *self._all()]
        subprocess.run(["npm", "install", *words], check=True)  # noqa: S607 - as users have it

    def _all(self) -> list[str]:
        machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")
        here = f"{sys.platform}-{machine or platform.machine()}"
        here += "-gnu" if sys.platform == "linux" else ""
        return [*self.packages, *(name.format(platform=here) for name in self.natives)]

    def _wanted(self) -> str:
        return " ".join(self._all())
