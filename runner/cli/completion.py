"""The command completion, and the answers to a shell that completes a word.

The script of a shell calls `siftlog` with `_SIFTLOG_COMPLETE=SHELL_complete` and the
words typed so far, by the protocol of click. Its classes are extended: words that go
on (`seed=`, `openai/`) get no space, descriptions may hold commas, and bash completes
words with `:` and `=`, at which it splits them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import click
from click import shell_completion
from click.shell_completion import CompletionItem, split_arg_string

from runner.cli.candidates import Candidate, Complete, completer, setting_flags
from runner.cli.command_table import LazyGroup, cli
from runner.cli.console import DONE
from store.printable import printable

VARIABLE: Final = "_SIFTLOG_COMPLETE"

OPEN: Final = "open"
"""Type of a candidate after which the shell adds no space."""

PLAIN: Final = "plain"

HELP_CHARS: Final = 60
"""Characters of a description."""

BASH: Final = """\
_siftlog_completion() {
    local type value word="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    while IFS=$'\\t' read -r type value; do
        [[ $value == *[!a-zA-Z0-9_./:=@%%+,-]* ]] && printf -v value %%q "$value"
        case "$type" in
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
            open) compopt -o nospace 2>/dev/null; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(env %(variable)s=bash_complete COMP_LINE="${COMP_LINE:0:COMP_POINT}" \\
        COMP_WORD="$word" "$1" 2>/dev/null)
}
complete -o nosort -F _siftlog_completion siftlog 2>/dev/null ||
    complete -F _siftlog_completion siftlog
"""

ZSH: Final = """\
#compdef siftlog

_siftlog() {
    local -a plain open
    local type value help
    [[ $PREFIX == --*=* ]] && compset -P '*='
    for type value help in "${(@f)$(env COMP_WORDS="${words[*]}" \\
        COMP_CWORD=$((CURRENT-1)) %(variable)s=zsh_complete $words[1] 2>/dev/null)}"
    do
        case "$type" in
            file) _files ;;
            dir) _files -/ ;;
            open) open+=("${value//:/\\\\:}:$help") ;;
            plain) plain+=("${value//:/\\\\:}:$help") ;;
        esac
    done
    (( $#plain )) && _describe -V siftlog plain
    (( $#open )) && _describe -V siftlog open -S ''
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _siftlog "$@"
else
    compdef _siftlog siftlog
fi
"""

FISH: Final = """\
function __siftlog_complete
    set -l word (commandline -ct)
    for line in (env %(variable)s=fish_complete COMP_WORDS=(commandline -cp) \\
        COMP_CWORD="$word" siftlog 2>/dev/null)
        set -l parts (string split \\t -- $line)
        switch $parts[1]
            case file
                __fish_complete_path "$word"
            case dir
                __fish_complete_directories "$word"
            case '*'
                printf '%%s\\t%%s\\n' $parts[2] $parts[3]
        end
    end
end
complete --no-files --keep-order --command siftlog --arguments '(__siftlog_complete)'
"""


class SiftlogBash(shell_completion.BashComplete):
    """Completes in bash."""

    source_template = BASH

    def source(self) -> str:
        """Return the script; it works, with spaces, in old versions too."""
        return self.source_template % {"variable": VARIABLE}

    def get_completion_args(self) -> tuple[list[str], str]:
        """Split the line as a shell does, not at each `:` and `=`."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        if line[-1:].isspace() or not words:
            return words, ""
        return words[:-1], words[-1]

    def get_completions(
        self, args: list[str], incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return what replaces bash's part of the word, which may be its end only."""
        items = completions(self, args, incomplete)
        word = os.environ["COMP_WORD"]
        end = "" if word in {":", "="} else word
        known = len(incomplete) - len(end) if incomplete.endswith(end) else 0
        return [
            CompletionItem(item.value[known:], item.type, item.help) for item in items
        ]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the type and the value."""
        return f"{item.type}\t{item.value}"


class SiftlogZsh(shell_completion.ZshComplete):
    """Completes in zsh."""

    def source(self) -> str:
        """Return the script."""
        return ZSH % {"variable": VARIABLE}

    def get_completions(
        self, args: list[str], incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return values; the script sets the option before a `=` aside."""
        items = completions(self, args, incomplete)
        known = len(_option_part(incomplete))
        return [
            CompletionItem(item.value[known:], item.type, item.help) for item in items
        ]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return three lines: type, value, description."""
        return f"{item.type}\n{item.value}\n{item.help or ' '}"


class SiftlogFish(shell_completion.FishComplete):
    """Completes in fish, which adds no space after `=` and `/`."""

    def source(self) -> str:
        """Return the script."""
        return FISH % {"variable": VARIABLE}

    def get_completions(
        self, args: list[str], incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return whole words."""
        return completions(self, args, incomplete)

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return type, value and description, between tabs."""
        return f"{item.type}\t{item.value}\t{item.help or ''}"


class Word(click.types.StringParamType):
    """Type of a parameter whose value is completed from candidates."""

    def __init__(self, complete: Complete) -> None:
        self.complete = complete

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return the candidates that begin with the word, or else files."""
        del param
        group = ctx.find_root().command
        typed = group.typed_context() if isinstance(group, CompletingGroup) else None
        items = list(_items(self.complete(typed or ctx, incomplete), incomplete))
        return items or [CompletionItem(incomplete, "file")]


class CompletingGroup(LazyGroup):
    """The commands, with parameters that complete their values."""

    def __init__(self) -> None:
        super().__init__("siftlog", params=cli.params)
        self.words: list[str] = []  #: of the line, before the one that is completed

    def typed_context(self) -> click.Context | None:
        """Return the context of the typed command, without an option's missing value.

        Click drops all values of a line that ends with an option.
        """
        if not self.words:
            return None
        name, *words = self.words
        root = self.context_class(self, info_name="siftlog")
        command = self.get_command(root, name)
        if command is None:
            return None
        if words and words[-1].startswith("-"):
            del words[-1]
        return command.make_context(name, words, parent=root, resilient_parsing=True)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _complete_values(command)
        return command

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return commands, without importing those of the table, and options."""
        commands = (
            Candidate(name, self.help_line(ctx, name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        )
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*_items(commands, incomplete), *options]


def _complete_values(command: click.Command) -> None:
    for parameter in command.params:
        complete = completer(command.name, parameter)
        if complete is not None:
            parameter.type = Word(complete)
    if isinstance(command, click.Group):
        for member in command.commands.values():
            _complete_values(member)


def _items(
    candidates: Iterable[Candidate], incomplete: str
) -> Iterator[CompletionItem[str]]:
    """Yield the candidates that begin with a word, harmless for a terminal."""
    for candidate in candidates:
        value = candidate.value
        if value.startswith(incomplete) and printable(value) == value:
            text = printable(candidate.help).replace("\n", " ")[:HELP_CHARS]
            kind = OPEN if candidate.is_open else PLAIN
            yield CompletionItem(value, kind, text or None)


def completions(
    shell: shell_completion.ShellComplete, args: list[str], incomplete: str
) -> list[CompletionItem[str]]:
    """Return whole words that complete the last one of a line.

    Click knows commands, options and their values; the settings of a job, which are
    options too, are added here.
    """
    option = _option_part(incomplete)
    group = shell.cli
    if not isinstance(group, CompletingGroup):
        return []
    group.words = args
    items = [
        CompletionItem(f"{option}{item.value}", item.type, item.help)
        for item in shell_completion.ShellComplete.get_completions(
            shell, args, incomplete
        )
    ]
    ctx = None if option else group.typed_context()
    if ctx is None or not ctx.command.context_settings.get("ignore_unknown_options"):
        return items
    known = {
        name
        for parameter in ctx.command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    if args[-1].startswith("--") and "=" not in args[-1] and args[-1] not in known:
        return [CompletionItem(incomplete, "file")]  # the value of a setting
    if incomplete.startswith("--"):
        flags = (flag for flag in setting_flags(ctx) if flag.value not in known)
        items += _items(flags, incomplete)
    return items


def _option_part(incomplete: str) -> str:
    """Return `--name=` of a word that is an option with its value; else nothing."""
    name, equals, _ = incomplete.partition("=")
    return f"{name}=" if name.startswith("--") and equals else ""


SHELLS: Final[Mapping[str, type[shell_completion.ShellComplete]]] = {
    "bash": SiftlogBash,
    "zsh": SiftlogZsh,
    "fish": SiftlogFish,
}


def _shell(name: str) -> shell_completion.ShellComplete:
    return SHELLS[name](CompletingGroup(), {}, "siftlog", VARIABLE)


def respond(instruction: str) -> int:
    """Print the candidates that a shell asks for; errors print nothing.

    Args:
        instruction: the value of the variable, such as `bash_complete`.
    """
    name = instruction.partition("_")[0]
    if name in SHELLS:
        # a person is in the middle of a line: any message would be written into it
        with suppress(Exception):
            click.echo(_shell(name).complete())
    return DONE


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
def completion(shell: str) -> int:
    """Print the script with which a shell completes commands of siftlog.

    It completes commands, options, jobs, runs, models, settings and items.

    In bash: siftlog completion bash >> ~/.bashrc

    In zsh: siftlog completion zsh >> ~/.zshrc

    In fish: siftlog completion fish > ~/.config/fish/completions/siftlog.fish
    """
    click.echo(_shell(shell).source(), nl=False)
    return DONE
