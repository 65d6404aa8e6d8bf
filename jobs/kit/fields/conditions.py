"""Parses and evaluates the conditions of follow-up questions.

A condition compares fields with constants, and joins comparisons with `and`, `or`,
`not` and parentheses. The syntax is Python's; only the nodes below are allowed, so a
condition cannot run code.

>>> condition = Condition.parse('design == "RCT" and (n > 20 or blinded)')
>>> condition.holds({"design": "RCT", "n": 12, "blinded": True})
True
>>> condition.holds({"design": "RCT", "n": None, "blinded": None})
False
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from jobs.kit.inputs.column_map import nearest

MOST_CHARS: Final = 1_000
"""Longest condition; Python's parser limits the depth of a text this short."""

CONSTANTS: Final[Mapping[str, bool | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}

_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}

_EXAMPLE: Final = 'such as design == "RCT" and enrolled > 20'


class ConditionError(ValueError):
    """A condition cannot be parsed, or does not fit the fields."""


class ConditionField(Protocol):
    """The part of a field's declaration that conditions depend on."""

    @property
    def type(self) -> str:
        """Return the type of the field."""

    @property
    def options(self) -> tuple[str, ...]:
        """Return the values of a one-of."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition."""

    _tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parse a condition; raise `ConditionError` for anything else."""
        if len(text) > MOST_CHARS:
            raise ConditionError(f"it has more than {MOST_CHARS:,} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ConditionError(f"write a condition, {_EXAMPLE}") from None
        _check_nodes(tree)
        return cls(tree)

    def names(self) -> tuple[str, ...]:
        """Return the fields that the condition reads, in order."""
        nodes = ast.walk(self._tree)
        return tuple(
            dict.fromkeys(
                node.id
                for node in nodes
                if isinstance(node, ast.Name) and node.id not in CONSTANTS
            )
        )

    def check(self, fields: Mapping[str, ConditionField]) -> None:
        """Raise `ConditionError` for an unknown field or an impossible comparison."""
        for name in self.names():
            if name not in fields:
                near = nearest(name, fields, n=1)
                hint = f"did you mean {near[0]!r}?" if near else ""
                raise ConditionError(
                    f"there is no field {name!r} in [fields] "
                    f"({hint or 'it may use: ' + ', '.join(fields)})"
                )
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                _check_options(node, fields)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Evaluate the condition.

        A comparison with a value that is null, missing or of another type is false;
        `name == null` and `name != null` test for null itself.
        """
        return bool(_value(self._tree, values))


def _check_nodes(node: ast.AST) -> None:
    match node:
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                _check_nodes(part)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _check_nodes(operand)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            pass
        case ast.Compare(left=left, ops=ops, comparators=rights):
            if any(type(op) not in _COMPARISONS for op in ops):
                raise ConditionError(f"use ==, !=, <, <=, >, >= or in, {_EXAMPLE}")
            for part in (left, *rights):
                _check_nodes(part)
        case ast.Name() | ast.Constant(value=str() | bool() | int() | float() | None):
            pass
        case _:
            raise ConditionError(
                f"only fields, texts, numbers, comparisons, and, or, not are allowed, "
                f"{_EXAMPLE}"
            )


def _check_options(node: ast.Compare, fields: Mapping[str, ConditionField]) -> None:
    """Refuse a one-of compared with a text that is not among its options."""
    sides = [node.left, *node.comparators]
    options = [
        fields[side.id].options
        for side in sides
        if isinstance(side, ast.Name)
        and side.id in fields
        and fields[side.id].type == "one-of"
    ]
    texts = [
        part.value
        for side in sides
        for part in ast.walk(side)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    for known in options:
        for text in texts:
            if text not in known:
                raise ConditionError(
                    f"{text!r} is not one of the options {', '.join(known)}"
                )


def _value(  # noqa: PLR0911 - one for each node
    node: ast.expr, values: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - of fields
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(bool(_value(part, values)) for part in parts)
        case ast.BoolOp(values=parts):
            return any(bool(_value(part, values)) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(part, values) for part in (left, *rights)]
            nulls = [_is_null(part) for part in (left, *rights)]
            return all(
                _compares(op, sides[i], sides[i + 1], has_null=nulls[i] or nulls[i + 1])
                for i, op in enumerate(ops)
            )
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part, values) for part in parts]
        case ast.Name(id=name):
            return CONSTANTS[name] if name in CONSTANTS else values.get(name)
        case ast.Constant(value=value):
            return value
        case _:
            raise AssertionError(node)  # _check_nodes admits nothing else


def _is_null(node: ast.expr) -> bool:
    """Return whether a node is the constant null itself."""
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Name)
        and node.id in CONSTANTS
        and CONSTANTS[node.id] is None
    )


def _compares(op: ast.cmpop, left: Any, right: Any, *, has_null: bool) -> bool:  # noqa: ANN401 - of fields
    if (left is None or right is None) and not has_null:
        return False
    try:
        return bool(_COMPARISONS[type(op)](left, right))
    except TypeError:
        return False
