"""The command jobs: lists the installed jobs, or the settings of one."""

from __future__ import annotations

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_text
from runner.table_rendering import in_columns


@click.command()
@click.argument("job_name", metavar="[JOB]", required=False)
@arguments.as_json
def jobs(job_name: str | None, as_json: bool) -> int:
    """List the installed jobs, or the settings of JOB."""
    from runner.registry import job_names, job_outline, load_job

    if job_name is not None:
        fields = load_job(job_name).Settings.model_json_schema()["properties"]
        lines = []
        for name, field in fields.items():
            default = field.get("default")
            allowed = field.get("enum", [])
            if as_json:
                print_json(
                    {
                        "setting": name,
                        "default": default,
                        "allowed": allowed,
                        "description": field.get("description", ""),
                    }
                )
            else:
                description = field.get("description", "")
                values = f" ({', '.join(map(str, allowed))})" if allowed else ""
                default_text = (
                    "" if default is None else f"  [default: {_typed(default)}]"
                )
                lines.append((name, f"{description}{values}{default_text}"))
        for line in in_columns(lines):
            print_text(line)
        return DONE
    for name in job_names():
        outline = job_outline(name)
        if as_json:
            stages = list(outline.stages)
            print_json({"job": name, "version": outline.version, "stages": stages})
        else:
            # a role of its own has a flag of its own: --judge-model and the like
            stage_labels = (
                stage if role == "subject" else f"{stage} ({role})"
                for stage, role in outline.stages.items()
            )
            print_text(
                f"{name:24} version {outline.version:8} stages: "
                f"{', '.join(stage_labels)}"
            )
    return DONE


def _typed(default: object) -> str:
    """A default as it would be typed."""
    if isinstance(default, list):
        return ",".join(map(str, default)) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "-"
