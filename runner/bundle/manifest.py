"""What a bundle says of itself: `bundle.json`, its first member.

A bundle is a run's folder in a zip archive: unpacked, it can be watched and scored like
any other. Beside what a run's folder has, there are this file and the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from runner.bundle.environment import Environment

NAME: Final = "bundle.json"
LOG: Final = "log.db"
CONFIG: Final = "run.toml"
INPUTS: Final = "inputs"
SCORES: Final = "scores"
SCORECARD: Final = "scorecard.json"

FORMAT: Final = 1
"""Of bundles; a later one is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file of a bundle."""

    name: str
    size: int  #: bytes, unpacked
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle holds, and of what."""

    format: int
    run: str
    job: str
    scoring: int
    digest: str  #: SHA-256 of scorecard.json
    partial: bool  #: the run is unfinished, as far as the bundle tells of it
    events: int
    head: str  #: the last link of the log's chain
    environment: Environment  #: in which the scorecard was made again
    members: tuple[Member, ...]  #: all but this file, by name


def scorecard_of(scoring: int) -> str:
    """The member that holds a scoring's scorecard."""
    return f"{SCORES}/{scoring}/{SCORECARD}"


def encoded(manifest: Manifest) -> bytes:
    """As bytes; equal manifests give equal ones."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versioned:
    format: int


def decoded(content: bytes) -> Manifest | int:
    """A manifest, or the format of one that is of a later siftlog.

    Raises:
        ValueError: it is none.
    """
    found = msgspec.json.decode(content, type=_Versioned).format
    if found > FORMAT:
        return found
    return msgspec.json.decode(content, type=Manifest)
