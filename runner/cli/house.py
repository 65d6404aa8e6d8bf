"""Verbs about the house itself: jobs, doctor."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from runner.cli import choices
from runner.cli.speech import DONE, ERROR, record, text

LOW_DISK_BYTES = 2 << 30
"""Below this a run of some size would soon meet a full disk."""


@click.command()
@click.argument("job_name", metavar="[JOB]", required=False)
@choices.as_json
def jobs(job_name: str | None, as_json: bool) -> int:
    """List the installed jobs, or the settings of JOB."""
    from runner.registry import job_names, load_job

    if job_name is not None:
        fields = load_job(job_name).Settings.model_json_schema()["properties"]
        for name, field in fields.items():
            default = field.get("default")
            allowed = field.get("enum", [])
            if as_json:
                record(
                    {
                        "setting": name,
                        "default": default,
                        "allowed": allowed,
                        "description": field.get("description", ""),
                    }
                )
            else:
                shown = "-" if default is None else str(default)
                said = field.get("description", "")
                values = f" ({', '.join(map(str, allowed))})" if allowed else ""
                text(f"{name:28} {shown:24} {said}{values}")
        return DONE
    for name in job_names():
        job = load_job(name)
        stages = [stage.name for stage in job.stages]
        if as_json:
            record({"job": name, "version": job.version, "stages": stages})
        else:
            # a role of its own has a flag of its own: --judge-model and the like
            named = (
                s.name if s.role == "subject" else f"{s.name} ({s.role})"
                for s in job.stages
            )
            text(f"{name:24} version {job.version:8} stages: {', '.join(named)}")
    return DONE


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: str  #: "ok", "note" or "blocks"
    said: str


@click.command()
@click.option("--base-url", multiple=True, help="An endpoint to reach; repeatable.")
@choices.runs_dir
@choices.as_json
def doctor(base_url: tuple[str, ...], runs_dir: Path, as_json: bool) -> int:
    """Check Python, SQLite, disk, keys and endpoints; exit 1 if one blocks a run."""
    checks = [*_machine(), *_disk(runs_dir), *_keys()]
    checks.extend(_endpoint(url) for url in base_url)
    for check in checks:
        if as_json:
            record(check._asdict())
        else:
            text(f"{check.state:7} {check.name:12} {check.said}")
    return ERROR if any(check.state == "blocks" for check in checks) else DONE


def _machine() -> Iterator[Check]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok", python)
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 37):
        yield Check("sqlite", "blocks", f"{version}; siftlog needs 3.37 or newer")
    else:
        yield Check("sqlite", "ok", version)


def _disk(runs_dir: Path) -> Iterator[Check]:
    from store.connect import wal_problem

    folder = runs_dir.resolve()
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        yield Check("folder", "blocks", f"{folder} is not writable; choose --runs-dir")
        return
    problem = wal_problem(folder)
    if problem is not None:
        yield Check("folder", "blocks", problem)
    else:
        yield Check("folder", "ok", f"{folder} keeps SQLite logs")
    free = shutil.disk_usage(folder).free
    state = "ok" if free >= LOW_DISK_BYTES else "note"
    yield Check("disk", state, f"{free / 2**30:.1f} GiB free")


def _keys() -> Iterator[Check]:
    environment = choices.environment()
    names = sorted(name for name in environment if name.endswith("_API_KEY"))
    said = ", ".join(names) + " set" if names else "no *_API_KEY is set"
    yield Check("keys", "ok" if names else "note", said)


def _endpoint(url: str) -> Check:
    import httpx

    from runner.clients.openai_compatible import endpoint_url

    address = endpoint_url(url)
    try:
        reply = httpx.get(f"{address}/models", timeout=10.0)
    except httpx.HTTPError as error:
        said = f"{url} cannot be reached ({type(error).__name__}); is it running?"
        return Check("endpoint", "blocks", said)
    return Check("endpoint", "ok", f"{url} answers with status {reply.status_code}")
