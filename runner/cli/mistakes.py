"""Words the errors of click as one sentence: what is wrong, and the next step."""

from __future__ import annotations

import re
from typing import Final

import click

from store.nearest import did_you_mean

_NOT_A: Final = re.compile(r"(.*) is not a valid (float|integer)\b.*")
_OUT_OF_RANGE: Final = re.compile(r"(\S+) is not in the range .*")
_NO_CHOICE: Final = re.compile(r"'(.*)' is not one of .*")
_UNEXPECTED: Final = re.compile(r"Got unexpected extra arguments? \((.*)\)")
_NO_VALUE: Final = re.compile(r"Option '(.*)' requires (an argument|\d+ arguments)\.")
"""Sentences of click that have no class of their own."""


class NearestGroup(click.Group):
    """A group that answers an unknown command with the nearest."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the typed command, or fail with the nearest name."""
        name, commands = args[0], self.list_commands(ctx)
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            path = ctx.command_path
            hint = did_you_mean(name, commands, f"see {path} --help.")
            group = path.removeprefix("siftlog ")
            ctx.fail(f"{group} has no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)


def error_sentence(error: click.ClickException) -> str:
    """Return the sentence of an error."""
    if not isinstance(error, click.UsageError):
        return error.format_message()
    path = "siftlog COMMAND" if error.ctx is None else error.ctx.command_path
    see = f"see {path} --help."
    command = path.removeprefix("siftlog ")
    match error:
        case click.NoSuchOption():
            options = [] if error.ctx is None else option_names(error.ctx.command)
            known = [f"--{name}" for name in (*options, "help", "version")]
            hint = did_you_mean(error.option_name, known, see)
            return f"{command} has no option {error.option_name}; {hint}"
        case click.MissingParameter():
            return f"{command} needs {_label(error)}; {see}"
        case click.BadParameter():
            return f"{_label(error)}: {_wrong(error, see)}"
        case _:
            return _plain(error.format_message(), command, see)


def _plain(message: str, command: str, see: str) -> str:
    """Return a message without the phrases of click."""
    if match := _UNEXPECTED.fullmatch(message):
        return f"{command} takes no further word: leave out {match[1]!r}, or {see}"
    if match := _NO_VALUE.fullmatch(message):
        number = "a value" if match[2].startswith("an ") else match[2].split()[0]
        values = number if number == "a value" else f"{number} values"
        return f"{match[1]} needs {values}; {see}"
    return message


def _wrong(error: click.BadParameter, see: str) -> str:
    """Return what is wrong with a value."""
    kind = None if error.param is None else error.param.type
    if match := _NO_CHOICE.fullmatch(error.message):
        kinds = kind.types if isinstance(kind, click.Tuple) else [kind]
        choices = [
            str(choice)
            for part in kinds
            if isinstance(part, click.Choice)
            for choice in part.choices
        ]
        hint = did_you_mean(match[1], choices, "")
        return f"{match[1]!r} is not one of {', '.join(choices)}; {hint or see}"
    if match := _NOT_A.fullmatch(error.message):
        noun = "a number" if match[2] == "float" else "a whole number"
        return f"{match[1]} is not {noun}; {see}"
    if (match := _OUT_OF_RANGE.fullmatch(error.message)) and isinstance(
        kind, click.IntRange | click.FloatRange
    ):
        return f"{match[1]} is not {_range(kind)}; {see}"
    end = "" if error.message.rstrip().endswith((".", "?")) else f"; {see}"
    return f"{error.message}{end}"


def _range(kind: click.IntRange | click.FloatRange) -> str:
    if kind.max is None:
        return f"{'above' if kind.min_open else 'at least'} {kind.min:g}"
    if kind.min is None:
        return f"{'below' if kind.max_open else 'at most'} {kind.max:g}"
    return f"between {kind.min:g} and {kind.max:g}"


def _label(error: click.BadParameter) -> str:
    """Return the option or argument as a user types it."""
    parameter = error.param
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    if parameter is not None and error.ctx is not None:
        return parameter.make_metavar(error.ctx).removesuffix("...")
    return str(error.param_hint or "value")


def option_names(command: click.Command) -> list[str]:
    """Return the names of the options that people type, without dashes."""
    return [
        name.removeprefix("--")
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    ]
