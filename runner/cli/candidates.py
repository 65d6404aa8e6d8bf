"""Candidates of completion: runs, jobs, models, settings and items.

Everything is read from names of files, short heads of files and sources, since a shell
waits for the answer: no job, no library of models and, but for items, no log is loaded.
Importing a job with its packages takes most of a second; the class of its settings is
followed through the imports in its source instead, and what cannot be read is left out.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import click

from runner.installed import entry_points

LAST: Final = "last"

RECENT: Final = 20
"""Runs whose models are offered."""

MOST: Final = 200
"""Candidates of one kind at most: a shell asks before it prints more."""

COMMON: Final = ("openai", "anthropic", "gemini", "mistral", "openrouter")
"""Providers that are offered before a letter is typed."""

SETTINGS: Final = "Settings"
"""The attribute of a job's class with the class of its settings."""

_HEAD: Final = 4096
"""Bytes of a run's configuration that hold its job and its models."""

_JOB: Final = re.compile(r'^job = "([^"]+)"$', re.MULTILINE)
_MODEL: Final = re.compile(r'^(?:model|judge_model) = (\[[^\]]*\]|".*")$', re.MULTILINE)
_QUOTED: Final = re.compile(r'"([^"]+)"')


class Candidate(NamedTuple):
    """A word that completes what was typed."""

    value: str
    help: str = ""
    is_open: bool = False  #: more follows: the shell adds no space


Complete: TypeAlias = Callable[[click.Context, str], Iterable[Candidate]]
"""Returns candidates for a word; they need not begin with it."""


def runs(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield the ids of runs, the newest first, with their jobs."""
    del word
    folders = _run_folders(_runs_dir(ctx))
    if folders:
        yield Candidate(LAST, "the newest run")
    for folder in folders[:MOST]:
        yield Candidate(folder.name, _job_in(_head(folder)))


def jobs(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield the names of jobs, then recipes and Python files of the current folder."""
    from runner.registry import job_files, job_names

    del ctx
    yield from map(Candidate, job_names())
    if "/" not in word:
        yield from map(Candidate, job_files(Path()))


def runs_and_jobs(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield ids of runs, then names of jobs."""
    yield from runs(ctx, word)
    yield from jobs(ctx, word)


def models(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield the models of the named run or else of recent ones, and known models.

    Of the thousands of models that are known, those of a provider are offered once the
    provider is typed.
    """
    runs_dir = _runs_dir(ctx)
    run = ctx.params.get("run_name")
    of_run = [runs_dir / run] if isinstance(run, str) else []
    names: dict[str, None] = {}
    for folder in of_run or _run_folders(runs_dir)[:RECENT]:
        names |= dict.fromkeys(_models_in(_head(folder)))
    if of_run:
        yield from map(Candidate, names)
        return
    from runner.model_names import OFFLINE, model_names

    yield from map(Candidate, {**names, OFFLINE: None})
    yield Candidate("recorded:", "replies of a file or a run", is_open=True)
    known = model_names()
    if "/" in word:
        yield from map(Candidate, [name for name in known if name.startswith(word)])
        return
    providers = dict.fromkeys(name.partition("/")[0] for name in known)
    for provider in providers if word else COMMON:
        yield Candidate(f"{provider}/", is_open=True)


def settings(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield the settings of the job, or of the job of the run, as `KEY=`."""
    del word
    for name, text in _settings_of(ctx.params, _runs_dir(ctx)).items():
        yield Candidate(f"{name}=", text, is_open=True)


def setting_flags(ctx: click.Context) -> Iterator[Candidate]:
    """Yield the settings of the job as flags of a command that takes them."""
    for name, text in _settings_of(ctx.params, _runs_dir(ctx)).items():
        yield Candidate(f"--{name.replace('_', '-')}", text)


def items(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield the keys of items of the run that begin with *word*."""
    run = ctx.params.get("run_name") or ctx.params.get("what")
    if not isinstance(run, str):
        return
    from store.database import open_reader
    from store.read.tasks import items_beginning
    from store.runs import resolve

    with open_reader(resolve(_runs_dir(ctx), run).log) as reader:
        yield from map(Candidate, items_beginning(reader, word, MOST))


def files(ctx: click.Context, word: str) -> Iterator[Candidate]:
    """Yield nothing: the shell completes names of files where nothing else fits."""
    del ctx, word
    yield from ()


COMPLETERS: Final[Mapping[str, Complete]] = {
    "against": runs,
    "bundle_name": runs,
    "compare words": runs,
    "embed_model": models,
    "explain words": items,
    "items": files,
    "job": jobs,
    "job_name": jobs,
    "judge_model": models,
    "model": models,
    "models": models,
    "place": files,
    "places": files,
    "prompts name": runs_and_jobs,
    "rerank_model": models,
    "run_name": runs,
    "sets": settings,
    "ship": files,
    "show name": items,
    "source": files,
    "what": runs_and_jobs,
}
"""Completers by the name of a parameter, or by that of its command too."""


def completer(command: str | None, parameter: click.Parameter) -> Complete | None:
    """Return the completer of a command's parameter; None: click completes it."""
    name = parameter.name or ""
    complete = COMPLETERS.get(f"{command} {name}", COMPLETERS.get(name))
    is_text = parameter.type in {click.STRING, click.UNPROCESSED}
    if complete is None and is_text and isinstance(parameter, click.Argument):
        return files
    return complete


def _runs_dir(ctx: click.Context) -> Path:
    return Path(ctx.params.get("runs_dir") or "runs")


def _run_folders(runs_dir: Path) -> list[Path]:
    """Return the folders of runs, the newest first."""
    try:
        with os.scandir(runs_dir) as entries:
            dated = [
                (entry.stat().st_mtime_ns, entry.path)
                for entry in entries
                if entry.is_dir() and _holds_log(entry.path)
            ]
    except OSError:
        return []
    return [Path(path) for _, path in sorted(dated, reverse=True)]


def _holds_log(folder: str) -> bool:
    """Return whether a folder is that of a run, or of the shards of one."""
    names = os.listdir(folder)  # noqa: PTH208 - Path is slow
    return any(name.startswith("log.") and name.endswith(".db") for name in names)


def _head(folder: Path) -> str:
    """Return the beginning of a run's configuration; empty if there is none."""
    try:
        with (folder / "run.toml").open("rb") as file:
            return file.read(_HEAD).decode(errors="replace")
    except OSError:
        return ""


def _job_in(head: str) -> str:
    match = _JOB.search(head)
    return match[1] if match else ""


def _models_in(head: str) -> Iterator[str]:
    for match in _MODEL.finditer(head):
        yield from _QUOTED.findall(match[1])


def _settings_of(parameters: Mapping[str, Any], runs_dir: Path) -> dict[str, str]:
    """Return the settings of the job that a command names, or that its run is of."""
    from runner.registry import recipe_reader

    for name in ("job_name", "job", "what", "name", "run_name"):
        word = parameters.get(name)
        if not isinstance(word, str):
            continue
        if names := setting_names(recipe_reader(word) or word):
            return names
        folder = (_run_folders(runs_dir) or [Path()])[0] if word == LAST else None
        return setting_names(_job_in(_head(folder or runs_dir / word)))
    return {}


def setting_names(job: str) -> dict[str, str]:
    """Return the settings of an installed job with their descriptions.

    They are empty if the job is not installed or its source cannot be followed.
    """
    from runner.registry import GROUP

    for point in entry_points(group=GROUP, name=job):
        return _settings_in(point.value.partition(":")[0].strip())
    return {}


def _settings_in(module: str) -> dict[str, str]:
    """Return the settings of the job in a module."""
    tree = _parsed(module)
    for node in [] if tree is None else ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=name)) if (
                target == SETTINGS
            ):
                return _fields_of(module, name)
            case _:
                pass
    return {}


def _fields_of(module: str, name: str) -> dict[str, str]:
    """Return the fields of a class, with those of its bases, which come first."""
    tree = _parsed(module)
    if tree is None:
        return {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields: dict[str, str] = {}
            for base in node.bases:
                if isinstance(base, ast.Name):
                    fields |= _fields_of(module, base.id)
            left_out = _class_variables(node)
            inherited = {k: text for k, text in fields.items() if k not in left_out}
            return inherited | dict(_annotated_fields(node))
    source = _imported(tree).get(name)
    return {} if source is None else _fields_of(source, name)


def _class_variables(node: ast.ClassDef) -> set[str]:
    """Return the class variables, which are no fields, even of a field's name."""
    return {
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and ast.unparse(statement.annotation).startswith("ClassVar")
    }


def _annotated_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if not ast.unparse(kind).startswith("ClassVar"):
                    yield name, _description(value)
            case _:
                pass


def _description(value: ast.expr | None) -> str:
    """Return the description that a call of `Field` is given."""
    match value:
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                match keyword:
                    case ast.keyword(
                        arg="description", value=ast.Constant(value=str(text))
                    ):
                        return text
                    case _:
                        pass
        case _:
            pass
    return ""


def _imported(tree: ast.Module) -> Mapping[str, str]:
    """Return the module of each name that a module imports."""
    return {
        alias.asname or alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }


def _parsed(module: str) -> ast.Module | None:
    """Return the syntax tree of a module; None if there is no source."""
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            return None
        return ast.parse(Path(spec.origin).read_bytes())
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
