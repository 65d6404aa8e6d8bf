"""Defines what a log records of the code that wrote it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFingerprint:
    """The code that plans, parses and scores: hex hashes of its files, by class."""

    job: str  #: files of the job, its shipped prompts included
    kit: str  #: files shared by jobs that it imports, without those of metrics
    metrics: str  #: files of metrics that it imports
    engine: str  #: the packages `runner` and `store`
    dependencies: dict[str, str]  #: versions of Python and of packages that compute
