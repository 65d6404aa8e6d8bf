"""Lays out help: sections, colours where a terminal has them, long lists cut short.

A command with many options shows those that people use; `--help-all` shows all, in
sections. Styles are escape sequences in the text, which click removes where stdout is
no terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

ALL: Final = "--help-all"

_SHOWS_ALL: Final = "siftlog.help_all"
"""Key of a context: its help shows every option."""

_HELP_ALL: Final = "help_all"

_OTHERS: Final = "Other options"


def terminal_colour() -> bool | None:
    """Return click's `color`: False without colours, None where the terminal decides.

    `NO_COLOR` (https://no-color.org) and a dumb terminal turn colours off.
    """
    is_off = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if is_off else None


class StyledFormatter(click.HelpFormatter):
    """Formats help with bold headings and coloured names."""

    def write_heading(self, heading: str) -> None:
        """Write a heading, without the colon of click."""
        self.write(f"{'':{self.current_indent}}{click.style(heading, bold=True)}\n")

    def write_dl(
        self,
        rows: Iterable[tuple[str, str]],
        col_max: int = 28,
        col_spacing: int = 2,
    ) -> None:
        """Write names and their descriptions."""
        styled = [(click.style(name, fg="cyan"), text) for name, text in rows]
        super().write_dl(styled, col_max, col_spacing)


class StyledContext(click.Context):
    """The context of every command: its help is styled."""

    formatter_class = StyledFormatter


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    from runner.installed import version

    click.echo(f"siftlog, version {version('siftlog')}")
    ctx.exit()


def version_option(*, is_hidden: bool) -> click.Option:
    """Return `--version`, which every command takes and the first help shows."""
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=is_hidden,
        callback=_print_version,
        help="Show the version and exit.",
    )


_METAVARS: Final = {
    "integer": "N",
    "integer range": "N",
    "float": "NUMBER",
    "float range": "NUMBER",
    "directory": "FOLDER",
}
"""Placeholders of options that name none, by the type of their value."""


def adopt(command: click.Command) -> click.Command:
    """Give a command that was loaded the style of siftlog and `--version`."""
    if command.context_class is not StyledContext:
        command.context_class = StyledContext
        for option in command.params:
            if option.metavar is None and option.type.name in _METAVARS:
                option.metavar = _METAVARS[option.type.name]
        command.params.append(version_option(is_hidden=True))
        if isinstance(command, click.Group):
            for member in command.commands.values():
                adopt(member)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionLayout:
    """The options of a long command, by the names of their parameters."""

    everyday: tuple[str, ...]  #: shown by `--help`, in this order
    sections: Mapping[str, tuple[str, ...]]  #: of `--help-all`, by title


class LongCommand(click.Command):
    """A command with more options than fit a screen."""

    def __init__(self, *args: Any, layout: OptionLayout, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.layout = layout
        self.params.append(
            click.Option(
                [ALL, _HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_all,
                help="Show all options and exit.",
            )
        )

    def get_help_option_names(
        self,
        ctx: click.Context,  # noqa: ARG002 - declared by click
    ) -> list[str]:
        """Return the names of the whole command line, also if it is called alone."""
        return ["-h", "--help"]

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that people use, or all of them in sections."""
        options = {
            option.name: record
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            and (record := option.get_help_record(ctx)) is not None
        }
        of_help = (_HELP_ALL, *((h.name,) if (h := self.get_help_option(ctx)) else ()))
        helps = [options.pop(name) for name in of_help]
        if not ctx.meta.get(_SHOWS_ALL):
            everyday = [options[n] for n in self.layout.everyday if n in options]
            with formatter.section("Options"):
                formatter.write_dl([*everyday, *helps])
            more = len(options) - len(everyday)
            formatter.write_paragraph()
            formatter.write_text(f"{more} more options: {ctx.command_path} {ALL}")
            return
        for title, names in self.layout.sections.items():
            rows = [options.pop(name) for name in names if name in options]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section(_OTHERS):
            formatter.write_dl([*options.values(), *helps])


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


RUN_LAYOUT: Final = OptionLayout(
    everyday=(
        *("model", "base_url", "price", "budget", "concurrency", "rpm", "cache"),
        *("config", "sets", "run_id", "runs_dir"),
        *("dry_run", "accept_changes", "detach", "no_score", "as_json"),
    ),
    sections={
        "Models": (
            *("model", "judge_model", "embed_model", "rerank_model", "stage"),
            *("base_url", "api", "api_key_env", "replicates"),
        ),
        "Requests": (
            *("temperature", "top_p", "model_seed", "reasoning_effort", "thinking"),
            *("service_tier", "extra_body", "extra_headers", "drop_refused"),
        ),
        "Money": ("budget", "price", "allow_unknown_price", "count_tokens"),
        "Limits and timeouts": (
            *("concurrency", "rpm", "tpm", "rate_share"),
            *("timeout_s", "deadline_s", "grace_s"),
        ),
        "Cache and batches": (
            *("cache", "cache_dir", "cache_from"),
            *("batch", "batch_requests", "batch_poll_s", "batch_adopt"),
        ),
        "Early end": ("stop_if", "stop_when_decided", "alpha"),
        "Run": (
            *("config", "sets", "run_id", "runs_dir", "dry_run", "detach"),
            *("accept_changes", "unknown"),
        ),
        "Several processes": (
            *("engine", "shards", "address", "shard", "local_dir"),
            *("ship", "ship_every", "accept_loss"),
        ),
        "Output": ("no_score", "no_report", "figures", "output_dir", "as_json"),
    },
)
"""The options of run, and of commands that take most of them."""

REPLAY_LAYOUT: Final = OptionLayout(
    everyday=(
        *("model", "base_url", "price", "budget", "concurrency", "rpm", "tpm"),
        *("rate_share", "batch", "replicates", "runs_dir", "as_json"),
    ),
    sections=RUN_LAYOUT.sections,
)
"""The options of estimate, which changes the limits of a recorded run."""

FORK_LAYOUT: Final = OptionLayout(
    everyday=(
        *("run_id", "prompts", "sets", "model", "from_stage"),
        *("base_url", "price", "budget", "concurrency", "rpm"),
        *("runs_dir", "dry_run", "no_score", "as_json"),
    ),
    sections={"Changes": ("prompts", "from_stage"), **RUN_LAYOUT.sections},
)
"""The options of fork, which changes a run that has ended."""
