"""Reads the names of a job's settings from its source, without importing the job.

Importing a job with its packages takes most of a second, which is too long for the
completion of a shell. The class of the settings is followed through the imports of the
job's module; what cannot be read so is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from runner.installed import entry_points

JOBS = "siftlog.jobs"

SETTINGS = "Settings"
"""The attribute of a job's class with the class of its settings."""


def setting_names(job: str) -> dict[str, str]:
    """Return the settings of an installed job with their descriptions.

    They are empty if the job is not installed or its source cannot be followed.
    """
    for point in entry_points(group=JOBS, name=job):
        return _settings_of(point.value.partition(":")[0].strip())
    return {}


def _settings_of(module: str) -> dict[str, str]:
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
