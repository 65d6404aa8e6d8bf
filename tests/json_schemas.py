"""JSON Schemas of what commands print, derived from the types in the code.

The published schemas allow further fields, which later siftlogs of the same version
may print. The closed ones of the tests do not, so that a field without a type fails.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import json
import re
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, is_dataclass
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from jobs.cli import json_forms as of_jobs
from runner.cli import json_forms as of_runner
from runner.cli.json_forms import JsonForm
from store.events import KINDS

FORMS: Mapping[str, JsonForm] = {**of_runner.FORMS, **of_jobs.FORMS}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"

Node = dict[str, Any]

PLAIN: Mapping[Any, Node] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def file_of(form: str) -> Path:
    """Where the schema of a form is published."""
    return FOLDER / f"{form.removeprefix('siftlog.').partition('/')[0]}.json"


def schema_of(form: str, *, is_closed: bool = False) -> Node:
    """The schema of a form; closed: fields without a type are errors."""
    entry = FORMS[form]
    writer = _Writer(is_closed=is_closed)
    fields = dict(item for record in entry.records for item in fields_of(record))
    node = writer.record(fields, is_open=entry.is_open)
    node["properties"] = {"schema": {"const": form}, **node["properties"]}
    node["required"].insert(0, "schema")
    head = {"$schema": DIALECT, "title": form, "description": _doc(entry.records[0])}
    parts = {"$defs": dict(sorted(writer.parts.items()))} if writer.parts else {}
    return {**head, **node, **parts}


def published(form: str) -> str:
    """The text of a schema's file."""
    return json.dumps(schema_of(form), indent=1, ensure_ascii=False) + "\n"


def publish() -> None:
    """Write all schemas anew."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for form in FORMS:
        file_of(form).write_text(published(form))
    EVENTS_FILE.write_text(published_events())


EVENTS_FILE = FOLDER / "log-events.json"
"""The schema of events as a log stores them."""


def published_events() -> str:
    """The schema of the stored fields of every kind of event, by its name."""
    writer = _Writer(is_closed=False, omits_defaults=True)
    kinds: dict[str, Node] = {}
    for kind, event in KINDS.items():
        fields = dict(fields_of(event))
        kinds[kind] = {"description": _doc(event), **writer.record(fields)}
        kinds[kind]["properties"] |= {
            of.name: {**kinds[kind]["properties"][of.name], "default": of.default}
            for of in msgspec.structs.fields(event)
            if isinstance(of.default, str | int | float | bool | None)
        }
    node = {
        "$schema": DIALECT,
        "title": "siftlog.log-events/1",
        "description": "Fields of events as stored in a log, by kind. A field that "
        "has its default is left out.",
        "$defs": {**kinds, **dict(sorted(writer.parts.items()))},
    }
    return json.dumps(node, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a record."""

    type: Any
    comment: str
    is_required: bool
    has_default: bool


def fields_of(record: type) -> Iterator[tuple[str, Field]]:
    """The fields of a dataclass, typed dictionary, named tuple or struct, in order."""
    comments = dict(_comments(record))
    defaults = _with_default(record)
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is ClassVar or hint is ClassVar:
            continue
        is_required = get_origin(hint) is not NotRequired
        plain = hint if is_required else get_args(hint)[0]
        comment = comments.get(name, "")
        yield (
            name,
            Field(
                type=plain,
                comment=comment,
                is_required=is_required,
                has_default=name in defaults,
            ),
        )


def _with_default(record: type) -> set[str]:
    if issubclass(record, msgspec.Struct):
        return {of.name for of in msgspec.structs.fields(record) if not of.required}
    if is_dataclass(record):
        return {
            of.name
            for of in dataclasses.fields(record)
            if of.default is not MISSING or of.default_factory is not MISSING
        }
    return set()


def _comments(record: type) -> Iterator[tuple[str, str]]:
    """What stands beside the fields, or below them."""
    for base in getattr(record, "__orig_bases__", record.__bases__):
        if is_record(base):
            yield from _comments(base)
    try:
        source = textwrap.dedent(inspect.getsource(record))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, ValueError):
        return
    if not isinstance(tree, ast.ClassDef):
        return
    lines = source.splitlines()
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            comment = lines[(node.end_lineno or node.lineno) - 1].partition("#: ")[2]
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))) if not comment:
                    comment = " ".join(text.split())
                case _:
                    pass
            yield node.target.id, comment


def is_record(kind: object) -> bool:
    """Whether objects of this type are printed with their fields."""
    return isinstance(kind, type) and (
        is_typeddict(kind)
        or is_dataclass(kind)
        or issubclass(kind, msgspec.Struct)
        or hasattr(kind, "_fields")
    )


def _doc(record: type) -> str:
    text = inspect.cleandoc(record.__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split())


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Turns types into schemas, and collects the records that they name."""

    is_closed: bool
    omits_defaults: bool = False  #: fields with their default are left out
    parts: dict[str, Node] = field(default_factory=dict)

    def record(self, fields: Mapping[str, Field], *, is_open: bool = False) -> Node:
        node: Node = {
            "type": "object",
            "properties": {name: self._field(of) for name, of in fields.items()},
            "required": [
                name
                for name, of in fields.items()
                if of.is_required and not (self.omits_defaults and of.has_default)
            ],
        }
        if self.is_closed and not is_open:
            node["additionalProperties"] = False
        return node

    def _field(self, of: Field) -> Node:
        # the words of JSON for those of Python
        text = re.sub(r"\bNone\b", "null", of.comment)
        comment = {"description": text} if text else {}
        return {**self.node(of.type), **comment}

    def node(self, kind: Any) -> Node:
        if kind in PLAIN:
            return {**PLAIN[kind]}
        if get_origin(kind) is not None:
            return self._generic(get_origin(kind), get_args(kind))
        if issubclass(kind, enum.Enum):
            return self._words([member.value for member in kind])
        assert is_record(kind), kind
        name = kind.__name__.removesuffix("Json")
        if name not in self.parts:
            self.parts[name] = {}  # a record may hold its own kind
            doc = {"description": _doc(kind)}
            self.parts[name] = doc | self.record(dict(fields_of(kind)))
        return {"$ref": f"#/$defs/{name}"}

    def _generic(self, origin: Any, args: Sequence[Any]) -> Node:
        if origin is Literal:
            return self._words(args)
        if origin in {Union, types.UnionType}:
            return self._either([self.node(arg) for arg in args])
        if origin is tuple and args[-1] is not ...:
            return {"type": "array", "prefixItems": [*map(self.node, args)]}
        if issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.node(args[1])}
        assert issubclass(origin, Sequence), origin
        return {"type": "array", "items": self.node(args[0])}

    def _words(self, words: Sequence[Any]) -> Node:
        """One word is fixed; of several there may be more in a later siftlog."""
        if len(words) == 1:
            return {"const": words[0]}
        if self.is_closed:
            return {"enum": [*words]}
        return {"type": "string", "examples": [*words]}

    def _either(self, nodes: Sequence[Node]) -> Node:
        if all(node.keys() == {"type"} for node in nodes):
            return {"type": [node["type"] for node in nodes]}
        return {"anyOf": [*nodes]}
