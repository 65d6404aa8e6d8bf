"""Types of the JSON objects of `siftlog screen`."""

from __future__ import annotations

from typing import TypedDict


class ScreeningJson(TypedDict):
    """The state of a screening after a session."""

    run: str
    folder: str  #: of the label logs
    answered: int  #: in this session
    records: int
    labelled: int
    relevant: int
    relevant_at_most: int  #: upper bound on the relevant records of the library
    recall_at_least: float
    target: float
    alpha: float
    draws: int
    draws_counted: int  #: in the bound
    stop: bool
    forecast: str
    certificate: str | None  #: written by this session


class CurvePointJson(TypedDict):
    """The state after some records of a simulated screening."""

    read: int
    bound: float  #: lower bound on recall
    recall: float  #: true


class SimulatedRuleJson(TypedDict):
    """The simulated screenings of one stop rule."""

    name: str
    stops: int
    below_target: float  #: share of stops with a true recall below the target
    recall: float  #: mean
    least_recall: float
    read: float  #: mean share of the library
    saved: float


class ScreeningSimulationJson(TypedDict):
    """Simulated screenings of a labelled library."""

    records: int
    relevant: int
    target: float
    alpha: float
    order: str
    seeds: int
    rules: list[SimulatedRuleJson]
    curve: list[CurvePointJson]  #: of the first seed
    files: list[str]  #: figures
