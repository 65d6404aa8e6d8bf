"""The commands of `siftlog`: where each is, its line of help, and their sections.

Commands are loaded one at a time, so that `--help` and `status` start fast; therefore
the table below holds the help line of each. Commands of other packages are entry points
(group `siftlog.commands`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import click

from runner.cli.console import print_note
from runner.cli.help import StyledContext, adopt, version_option
from runner.cli.mistakes import NearestGroup, option_names
from runner.errors import RunnerError, UnknownSetting
from runner.installed import entry_points

GROUP = "siftlog.commands"


class CommandEntry(NamedTuple):
    """Location of a command, and its help line."""

    module: str
    attribute: str
    help: str


COMMANDS = {
    "run": CommandEntry("runner.cli.run", "run", "Run a job and score its answers."),
    "resume": CommandEntry("runner.cli.run", "resume", "Resume an interrupted run."),
    "import": CommandEntry(
        "runner.cli.import_", "import_", "Import answers made by other tools."
    ),
    "estimate": CommandEntry(
        "runner.cli.run", "estimate", "Replay a run under other limits or models."
    ),
    "prepare": CommandEntry(
        "runner.cli.prepare", "prepare", "Check or build a job's data."
    ),
    "simulate": CommandEntry(
        "runner.simulate.command", "simulate", "Serve a test endpoint with faults."
    ),
    "fork": CommandEntry(
        "runner.cli.fork", "fork", "Continue a finished run with changes."
    ),
    "add-stage": CommandEntry(
        "runner.cli.add_stage",
        "add_stage",
        "Add a judge or a scan to a finished run.",
    ),
    "score": CommandEntry("runner.cli.score", "score", "Score a run's stored answers."),
    "scores": CommandEntry("runner.cli.score", "scores", "List a run's scorings."),
    "explain": CommandEntry(
        "runner.cli.explain", "explain", "Explain how items were judged."
    ),
    "show": CommandEntry(
        "runner.cli.show", "show", "Show a task, or all tasks of an item."
    ),
    "runs": CommandEntry("runner.cli.runs", "runs", "List the runs."),
    "status": CommandEntry("runner.cli.status", "status", "Show the status of a run."),
    "tasks": CommandEntry("runner.cli.runs", "tasks", "List a run's tasks."),
    "events": CommandEntry("runner.cli.runs", "events", "List a run's events."),
    "pause": CommandEntry("runner.cli.control", "pause", "Pause a live run."),
    "drain": CommandEntry(
        "runner.cli.control", "drain", "Stop a live run so that it can be resumed."
    ),
    "cancel": CommandEntry(
        "runner.cli.control", "cancel", "End a run and skip its open tasks."
    ),
    "retry": CommandEntry("runner.cli.control", "retry", "Retry failed tasks."),
    "commands": CommandEntry(
        "runner.cli.control",
        "commands",
        "List control commands; withdraw pending ones.",
    ),
    "limits": CommandEntry(
        "runner.cli.limits", "limits", "Show or set a run's limits."
    ),
    "budget": CommandEntry(
        "runner.cli.budget", "budget", "Show or raise a run's budget."
    ),
    "export": CommandEntry(
        "runner.cli.export", "export", "Write tables, or OpenTelemetry traces."
    ),
    "sql": CommandEntry("runner.cli.sql", "sql", "Query a run's log in SQL."),
    "bundle": CommandEntry(
        "runner.cli.bundle", "bundle", "Pack a scoring and its inputs into one file."
    ),
    "disclose": CommandEntry(
        "runner.cli.disclose", "disclose", "Prove items of a redacted bundle to others."
    ),
    "merge": CommandEntry(
        "runner.cli.merge", "merge", "Merge the logs of a split run."
    ),
    "verify": CommandEntry(
        "runner.cli.verify",
        "verify",
        "Verify a run's log, a bundle or a certificate.",
    ),
    "regress": CommandEntry(
        "runner.cli.regress",
        "regress",
        "Check what today's code changes in recorded runs.",
    ),
    "reconcile": CommandEntry(
        "runner.cli.reconcile",
        "reconcile",
        "Compare a run with what its provider billed.",
    ),
    "rm": CommandEntry("runner.cli.rm", "rm", "Delete runs with their files."),
    "cache": CommandEntry(
        "runner.cli.cache", "cache", "List or prune the response cache."
    ),
    "prompts": CommandEntry(
        "runner.cli.prompts", "prompts", "Print a job's prompts, or those of a run."
    ),
    "models": CommandEntry(
        "runner.cli.models", "models", "List models, their prices and clients."
    ),
    "jobs": CommandEntry(
        "runner.cli.jobs", "jobs", "List jobs, or one job's settings."
    ),
    "doctor": CommandEntry(
        "runner.cli.doctor", "doctor", "Check this machine and endpoints."
    ),
    "completion": CommandEntry(
        "runner.cli.completion", "completion", "Print the completion of a shell."
    ),
}


SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Most used": (
        *("new", "run", "watch", "status", "resume"),
        *("runs", "show", "score", "report", "compare"),
    ),
    "Run": (
        *("run-all", "fork", "add-stage", "screen", "estimate", "prepare"),
        *("prompts", "import"),
    ),
    "Look": ("tasks", "events", "explain", "history", "serve"),
    "Score": (
        *("scores", "diff", "drift", "label", "labels", "estimate-quality"),
        *("methods", "check"),
    ),
    "Control": (
        *("pause", "drain", "cancel", "retry"),
        *("limits", "budget", "commands"),
    ),
    "Files": (
        *("export", "sql", "bundle", "disclose", "verify", "regress"),
        *("reconcile", "merge", "rm", "cache"),
    ),
    "Setup and tests": ("jobs", "models", "doctor", "simulate", "completion"),
}
"""Commands in the order of help; one that is not installed is left out."""

OTHERS: Final = "Others"
"""Title of commands without a section, such as those of other packages."""


class OldSpelling(NamedTuple):
    """A command of earlier versions: the words that replace it, as people type them."""

    words: tuple[str, ...]
    now: str


OLD_SPELLINGS: Final[Mapping[str, OldSpelling]] = {
    "generate": OldSpelling(("run", "--no-score"), "siftlog run JOB --no-score"),
}


class LazyGroup(NearestGroup):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return names in the order of the sections, then those of other packages."""
        del ctx
        points = sorted(point.name for point in entry_points(group=GROUP))
        placed = [name for names in SECTIONS.values() for name in names]
        known = [*COMMANDS, *points]
        return list(dict.fromkeys([*(n for n in placed if n in known), *known]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; an old spelling gives the command that replaced it."""
        if cmd_name in OLD_SPELLINGS:
            return self.get_command(ctx, OLD_SPELLINGS[cmd_name].words[0])
        if cmd_name in COMMANDS:
            verb = COMMANDS[cmd_name]
            module = importlib.import_module(verb.module)
            return adopt(cast("click.Command", getattr(module, verb.attribute)))
        for point in entry_points(group=GROUP, name=cmd_name):
            try:
                return adopt(cast("click.Command", point.load()))
            except (Exception, SystemExit) as error:
                raise RunnerError(
                    f"Command {cmd_name} ({point.value}) cannot be loaded: "
                    f"{type(error).__name__}: {error}; install its package again or "
                    "uninstall it."
                ) from error
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the typed command; an old spelling is replaced, with a note."""
        if args[0] == "help":
            args = [*args[1:], "--help"]
        if args[0] == "--help":
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        if (old := OLD_SPELLINGS.get(args[0])) is not None:
            if not ctx.resilient_parsing:
                print_note(f"note: siftlog {args[0]} is now {old.now}.")
            args = [*old.words, *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as in click
        """Run the typed command."""
        try:
            return super().invoke(ctx)
        except UnknownSetting as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            options = [] if command is None else option_names(command)
            raise error.or_option(options) from error

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands before the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands in sections, without importing those of the table."""
        names = self.list_commands(ctx)
        placed = {name for section in SECTIONS.values() for name in section}
        sections = {
            **SECTIONS,
            OTHERS: tuple(name for name in names if name not in placed),
        }
        column = max(map(len, names))
        for title, section in sections.items():
            rows = [
                (f"{name:{column}}", self.help_line(ctx, name))
                for name in section
                if name in names
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def help_line(self, ctx: click.Context, name: str) -> str:
        """Return the line of help of a command."""
        if name in COMMANDS:
            return COMMANDS[name].help
        try:
            command = self.get_command(ctx, name)
        except RunnerError as error:
            # a broken package must not hide the other commands
            return f"Broken: {error}"
        text = "" if command is None else command.short_help or command.help or ""
        return text.strip().partition("\n\n")[0].replace("\n", " ")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Ask questions of papers with LLMs; keep every answer, and score it.

    Start with: siftlog run paper-investigation

    RUN is a run's id, a prefix of one, its folder, or last. JOB is a name that siftlog
    jobs lists, a recipe (FILE.toml) or a Python file.

    Exit codes: 0 success, 1 error, 2 usage error, 3 finished with failed tasks, 4
    budget reached, 5 interrupted and resumable, 6 a check failed.
    """


cli.context_class = StyledContext
cli.params.append(version_option(is_hidden=False))
