"""How a property's values are compared, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The rules for two values, by the words that a rubric file uses."""

    SI = "0.1% SI"
    CATEGORICAL = "categorical"
    PYMATGEN = "pymatgen"
    SPACE_GROUP = "space group"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What a rubric file says of one property."""

    name: str
    kind: Kind
    si: str = ""  #: unit that its values are told in; empty: none
    definition: str = ""
    source_row: int = 0  #: in its file; the header is row 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """All properties of a rubric file, by name, in file order."""

    properties: Mapping[str, Property] = field(default_factory=dict)

    def kind(self, name: str) -> Kind:
        """The rule for a name; `exact` for one that is not in the rubric."""
        found = self.properties.get(name)
        return Kind.EXACT if found is None else found.kind

    def __contains__(self, name: str) -> bool:
        return name in self.properties
