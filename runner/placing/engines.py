"""The engines by the names that people type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from runner.placing.engine import Engine, Name
from runner.placing.processes import ProcessEngine
from runner.placing.ray_engine import RayEngine


def open_engine(
    name: Name, environment: Mapping[str, str], *, shards: int, address: str | None
) -> Engine:
    """The engine of a name, ready to place.

    Args:
        name: which.
        environment: has the values of the variables that shards are passed.
        shards: how many will be placed at a time.
        address: where its cluster is, for one that has one.

    Raises:
        RunnerError: it is not installed, or its cluster cannot be joined.
    """
    match name:
        case "processes":
            return ProcessEngine(environment)
        case "ray":
            return RayEngine(environment, shards=shards, address=address)
        case _:
            assert_never(name)
