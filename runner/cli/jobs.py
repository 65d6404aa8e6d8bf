"""The command jobs: lists the installed jobs, or the settings of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_text
from store.document import as_text, wide_table

if TYPE_CHECKING:
    from runner.job import Job


@click.command()
@click.argument("job_name", metavar="[JOB]", required=False)
@click.option("--all", "show_all", is_flag=True, help="Every setting of JOB.")
@arguments.as_json
def jobs(job_name: str | None, show_all: bool, as_json: bool) -> int:
    """List the installed jobs, or the settings of JOB that people usually set.

    JSON lists every setting.
    """
    from runner.errors import RunnerError
    from runner.registry import job_names, job_outline, load_job

    if job_name is not None:
        _print_settings(load_job(job_name), show_all=show_all, as_json=as_json)
        return DONE
    for name in job_names():
        try:
            outline = job_outline(name)
        except RunnerError as error:
            # a broken package must not hide the jobs of others
            if as_json:
                print_json("siftlog.job/1", {"job": name, "broken": str(error)})
            else:
                print_text(f"{name:24} broken: {error}")
            continue
        if as_json:
            stages = list(outline.stages)
            print_json(
                "siftlog.job/1",
                {"job": name, "version": outline.version, "stages": stages},
            )
        else:
            # roles of a job have flags such as --judge-model
            stage_labels = (
                stage if role == "subject" else f"{stage} ({role})"
                for stage, role in outline.stages.items()
            )
            print_text(
                f"{name:24} version {outline.version:8} stages: "
                f"{', '.join(stage_labels)}"
            )
    return DONE


def _print_settings(job: Job, *, show_all: bool, as_json: bool) -> None:
    """Print the common settings of a job, or all of them."""
    from runner.registry import typed_word

    fields = job.Settings.model_json_schema()["properties"]
    everyday = [name for name in fields if name in (job.everyday or fields)]
    if as_json:
        for name, field in fields.items():
            print_json(
                "siftlog.setting/1",
                {
                    "setting": name,
                    "default": field.get("default"),
                    "allowed": field.get("enum", []),
                    "description": field.get("description", ""),
                    "everyday": name in everyday,
                    "profiles": _profile_values(job, name),
                },
            )
        return
    names = fields if show_all else everyday
    rows = [(name, _described(job, name, fields[name])) for name in names]
    print_text(as_text([wide_table(("", ""), rows)]))
    if hidden := len(fields) - len(names):
        print_text(f"{hidden} more settings: siftlog jobs {typed_word(job)} --all")


def _profile_values(job: Job, setting: str) -> dict[str, Any]:
    """Return the value of a setting in each profile that sets it."""
    return {
        profile: values[setting]
        for profile, values in job.profiles.items()
        if setting in values
    }


def _described(job: Job, name: str, field: Mapping[str, Any]) -> str:
    """Return the description of a setting with allowed values and default."""
    allowed = field.get("enum", [])
    values = f" ({', '.join(map(str, allowed))})" if allowed else ""
    default = field.get("default")
    default_text = "" if default is None else f"  [default: {_typed(default)}]"
    profiles = "".join(
        f"  [{profile}: {_typed(value)}]"
        for profile, value in _profile_values(job, name).items()
    )
    return f"{field.get('description', '')}{values}{default_text}{profiles}"


def _typed(default: object) -> str:
    """Format a default as a user would type it."""
    if isinstance(default, list):
        return ",".join(map(str, default)) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "-"
