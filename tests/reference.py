"""The parts of docs/ that are made from the code: `make docs` writes them anew.

A page holds such a part between `<!-- NAME: made by make docs -->` and `<!-- end -->`.
A block whose first line is a comment with the path of a file is that file.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click

from runner.cli.command_table import OLD_SPELLINGS, SECTIONS, cli
from runner.engine.failure_policy import RETRY_RULES, RetryRule
from runner.registry import job_names, load_job
from store import control, events, task
from tests import json_schemas

DOCS = Path(__file__).resolve().parent.parent / "docs"

_FILE = re.compile(r"(```(?:python|toml)\n)# (example/\S+)\n(.*?)(```)", re.DOTALL)
_PART = re.compile(
    r"(<!-- ([\w-]+): made by make docs -->\n)(.*?)(<!-- end -->)", re.DOTALL
)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown, in which a bar is no edge of a cell."""
    heads = list(titles)
    lines = [heads, ["---"] * len(heads), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


HELP = {"--help", "--help-all"}

Option = tuple[str, str, str]
"""Names, help and environment variable of an option."""

#: Commands whose options other commands share; named there instead of repeated.
REFERENCES = ("run", "pause")


def command_line() -> str:
    """Every command with its usage, its help and its options."""
    frame = click.Context(cli, info_name="siftlog")
    shared: dict[str, list[Option]] = {}
    for name in REFERENCES:
        command = cli.get_command(frame, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=frame)
        known = [option for options in shared.values() for option in options]
        shared[name] = [o for o in _options(command, context) if o not in known]
    verbs = (
        _verb(
            command,
            click.Context(command, info_name=name, parent=frame),
            {other: shared[other] for other in shared if other != name},
        )
        for name in cli.list_commands(frame)
        if (command := cli.get_command(frame, name))
    )
    return "\n".join([*_contents(), *verbs])


def _contents() -> Iterator[str]:
    """The commands by section, and the old spellings of some."""
    known = cli.list_commands(click.Context(cli))
    yield table(
        ("section", "commands"),
        (
            (title, ", ".join(f"[{n}](#siftlog-{n})" for n in names if n in known))
            for title, names in SECTIONS.items()
        ),
    )
    yield table(
        ("earlier spelling, which keeps working", "is now"),
        (
            *(
                (f"`siftlog {name} JOB`", f"`{o.now}`")
                for name, o in OLD_SPELLINGS.items()
            ),
            ("`siftlog estimate JOB`", "`siftlog run JOB --dry-run`"),
            ("`siftlog estimate --from RUN`", "`siftlog estimate RUN`"),
        ),
    )


def _verb(
    command: click.Command,
    context: click.Context,
    shared: Mapping[str, list[Option]],
) -> str:
    """A command; options that it shares with a reference command are only named."""
    usage = " ".join(filter(None, command.collect_usage_pieces(context)))
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    parts = [
        f"## {context.command_path}\n",
        f"    {context.command_path} {usage}\n",
        f"{text}\n",
    ]
    options = [*_options(command, context)]
    if context.info_name == "run":
        shared = {}
    named = {option for of_other in shared.values() for option in of_other}
    rows = [option for option in options if option not in named]
    if rows:
        parts += _table(rows)
    parts += [
        _reference(name, options, of_other)
        for name, of_other in shared.items()
        if not {*of_other}.isdisjoint(options)
    ]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            if member is not None:
                within = click.Context(member, info_name=name, parent=context)
                parts.append("#" + _verb(member, within, shared))
    return "\n".join(parts)


def _table(rows: list[Option]) -> Iterator[str]:
    """The options, with their environment variables by one rule if most follow it."""
    without = [row for row in rows if row[2] != f"`{_variable(row)}`"]
    by_rule = len(without) < len(rows) / 2 and not any(row[2] for row in without)
    yield table(
        ("option", "does"),
        (
            (names, text if by_rule or not variable else f"{text}  [env: {variable}]")
            for names, text, variable in rows
        ),
    )
    if by_rule:
        yield (
            f"Environment variables are named like `{_variable(rows[0])}`; there is "
            f"none for {_names(without)}.\n"
        )


def _variable(option: Option) -> str:
    name = option[0].split()[0].strip("`-")
    return f"SIFTLOG_{name.replace('-', '_').upper()}"


def _reference(name: str, options: list[Option], of_other: list[Option]) -> str:
    """Names the options shared with a command, or the others if those are fewer."""
    link = f"[siftlog {name}](#siftlog-{name})"
    present = [option for option in of_other if option in options]
    absent = [option for option in of_other if option not in options]
    if len(absent) + 4 < len(present):
        return f"All options of {link} except {_names(absent)}.\n"
    return f"As in {link}: {_names(present)}.\n"


def _names(options: Iterable[Option]) -> str:
    return ", ".join(f"`{names.split()[0].strip('`')}`" for names, *_ in options)


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    for option in command.get_params(context):
        shown = option.get_help_record(context)
        # every command has --help, and every long one --help-all
        if isinstance(option, click.Argument) or shown is None or HELP & {*option.opts}:
            continue
        names, text = shown
        variable = f"`{option.envvar}`" if isinstance(option.envvar, str) else ""
        yield f"`{names}`", text, variable


def kinds_of_events() -> str:
    """Every kind of event, with what it says and its fields."""
    return table(
        ("kind", "meaning", "fields"),
        (
            (
                f"`{kind}`",
                _first_line(event),
                ", ".join(f"`{name}`" for name in event.__struct_fields__),
            )
            for kind, event in events.KINDS.items()
        ),
    )


def _first_line(thing: type) -> str:
    return inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def fields_of(of: type) -> Callable[[], str]:
    """The fields of a dataclass, with the comment beside each."""

    def fields() -> str:
        return table(("field", "type", "meaning"), _fields(of))

    return fields


def _fields(of: type) -> Iterator[tuple[str, str, str]]:
    source = inspect.getsource(of)
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            comment = lines[node.lineno - 1].partition("#: ")[2]
            yield f"`{node.target.id}`", f"`{ast.unparse(node.annotation)}`", comment


def states_of_tasks() -> str:
    """Each state of a task, with the comment beside it."""
    said = re.findall(r"(\w+) = \d  #: (.*)", inspect.getsource(task.TaskState))
    return table(("state", "meaning"), ((name.lower(), text) for name, text in said))


def moves_of_tasks() -> str:
    """Every legal move of a task: the machine itself."""
    return table(
        ("from", "by", "to"),
        (
            (before.name.lower(), move.value, after.name.lower())
            for (before, move), after in task.TRANSITIONS.items()
        ),
    )


def classes_of_failures() -> str:
    """Each class of a failed attempt, and how it is met."""
    return table(
        ("class", "meaning", "attempts", "may be billed"),
        (
            (
                f"`{error.__name__}`",
                _first_line(error),
                _bound(rule),
                "yes" if rule.is_billed else "no",
            )
            for error, rule in RETRY_RULES.items()
        ),
    )


def _bound(rule: RetryRule) -> str:
    """How often an attempt may end so."""
    if rule.stops_endpoint:
        return "stops the endpoint"
    return str(rule.max_attempts) if rule.is_counted else "not counted"


def prompts_of_jobs() -> str:
    """Lists the prompt blocks of every job."""
    return table(("job", "blocks"), _prompts())


def _prompts() -> Iterator[tuple[str, str]]:
    for name in job_names():
        catalog = load_job(name).prompts
        if catalog is not None:
            yield name, ", ".join(f"`{block.name}`" for block in catalog.blocks)


def everyday_settings() -> str:
    """Lists the settings of every job that a person usually sets."""
    return table(
        ("job", "common settings", "further"),
        (
            (
                name,
                ", ".join(f"`{setting}`" for setting in job.everyday),
                str(len(job.Settings.model_fields) - len(job.everyday)),
            )
            for name, job in ((name, load_job(name)) for name in job_names())
        ),
    )


def json_forms() -> str:
    """Lists the forms of printed JSON with their commands and schemas."""
    return table(
        ("form", "object", "printed by"),
        (
            (
                f"[`{form}`](schemas/{json_schemas.file_of(form).name})",
                json_schemas.schema_of(form)["description"].removesuffix("."),
                ", ".join(f"`{command}`" for command in entry.commands),
            )
            for form, entry in sorted(json_schemas.FORMS.items())
        ),
    )


_SCREENS = {
    "Commands": "commands log",
    "Dialog": "a dialog",
    "Event": "one event",
    "Help": "help, sorting",
    "InlineMonitor": "`--inline`",
    "Page": "Config, About",
    "ReplayMonitor": "`--replay`",
    "SortMenu": "help, sorting",
    "Task": "one task",
    "TaskPane": "one task",
}
"""How readers call a class with keys, if not by its name."""
_MOVES = frozenset({"enter", "escape", "h", "l", "left", "right"})
"""Keys that open and go back, which are named once for all screens."""


def keys_of_monitor() -> str:
    """Return the keys of each screen, from its bindings."""
    from textual.app import App  # noqa: PLC0415 - this part's
    from textual.keys import format_key  # noqa: PLC0415 - this part's

    from tui.terminal.keymap import all_bindings  # noqa: PLC0415 - this part's

    actions: dict[str, dict[str, dict[str, None]]] = {}
    for bound in all_bindings():
        name = bound.node_type.__name__.removesuffix("Screen")
        is_app = issubclass(bound.node_type, App) and name not in _SCREENS
        screen = "everywhere" if is_app else _SCREENS.get(name, name)
        keys = [format_key(key) for key in bound.keys if key not in _MOVES]
        if keys and not bound.id.startswith("move."):
            about = (bound.about or bound.id.rpartition(".")[2]).lower()
            same = actions.setdefault(screen, {}).setdefault(about, {})
            same.update(dict.fromkeys(f"`{key}`" for key in keys))
    rows = (
        (screen, ", ".join(f"{' '.join(keys)} {about}" for about, keys in of.items()))
        for screen, of in actions.items()
    )
    return table(("on", "keys"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "command-line": command_line,
    "task-states": states_of_tasks,
    "moves": moves_of_tasks,
    "events": kinds_of_events,
    "commands": fields_of(control.Command),
    "failures": classes_of_failures,
    "prompts": prompts_of_jobs,
    "everyday-settings": everyday_settings,
    "json-forms": json_forms,
    "keys": keys_of_monitor,
}


def renewed(page: str) -> str:
    """A page with each part as the code makes it now."""
    made = _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[4], page)
    return _FILE.sub(
        lambda found: (
            f"{found[1]}# {found[2]}\n{(DOCS / found[2]).read_text()}{found[4]}"
        ),
        made,
    )


def main() -> None:
    """Write all parts anew."""
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(renewed(path.read_text()))
    json_schemas.publish()


if __name__ == "__main__":
    main()
