"""A block of planned tasks as bytes: the payload of `TasksPlanned`.

A million tasks are planned in blocks of a thousand, so that planning costs a thousand
events and not a million. Stages and models are written once per block and referred to
by position; rows are JSON arrays, since a block repeats every field name otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from store.events import PlannedTask


class _Row(NamedTuple):
    stage: int
    key: str
    model: int
    replicate: int
    root: int
    skip: str | None = None
    context: str | None = None
    group: str | None = None


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    stages: list[str]
    models: list[str]
    tasks: list[_Row]


_DECODER = msgspec.json.Decoder(_Manifest)
_ENCODER = msgspec.json.Encoder()


def manifest_bytes(tasks: Sequence[PlannedTask]) -> bytes:
    """The payload of the `TasksPlanned` that plans *tasks*, in their order."""
    stages = list(dict.fromkeys(task.stage for task in tasks))
    models = list(dict.fromkeys(task.model for task in tasks))
    stage_at = {name: position for position, name in enumerate(stages)}
    model_at = {name: position for position, name in enumerate(models)}
    return _ENCODER.encode(
        _Manifest(
            stages=stages,
            models=models,
            tasks=[
                _Row(
                    stage_at[task.stage],
                    task.key,
                    model_at[task.model],
                    task.replicate,
                    task.root,
                    task.skip,
                    task.context,
                    task.group,
                )
                for task in tasks
            ],
        )
    )


def planned_tasks(payload: bytes) -> list[PlannedTask]:
    """The tasks of a manifest; the inverse of `manifest_bytes`.

    Raises:
        msgspec.DecodeError: the bytes are not a manifest.
        IndexError: a row refers to a stage or model that the manifest does not name.
    """
    manifest = _DECODER.decode(payload)
    return [
        PlannedTask(
            stage=manifest.stages[row.stage],
            key=row.key,
            model=manifest.models[row.model],
            replicate=row.replicate,
            root=row.root,
            skip=row.skip,
            context=row.context,
            group=row.group,
        )
        for row in manifest.tasks
    ]
