"""The rows that everything is about: what a curator wrote, and what a model found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One curated value of a property in a paper; texts are as they stand in the file.

    Several rows with one paper and name are normal.
    """

    refno: str
    name: str  #: property name; names are compared exactly
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    definition: str = ""
    source_row: int = 0  #: in its file; the header is row 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One value that a model stated."""

    refno: str
    name: str  #: as the model wrote it, before any alias
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    quote: str = ""
    mentions: int = 1  #: how often it was stated with all fields equal, in its paper
    row: int = 0  #: in file order, or order of the reply, over all papers; from 1
    flag: str = ""  #: `withdrawn` or `absent`, where a second request said so
