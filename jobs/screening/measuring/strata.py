"""Strata: all records, and each kind of negatives beside the included papers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jobs.metrics.columns import Bools
from jobs.screening.decisions import Records

ALL = "all"


def strata(records: Records) -> Mapping[str, Bools]:
    """The rows of each stratum; with one kind of negatives it is `all` again."""
    found = {ALL: np.ones(len(records), dtype=np.bool_)}
    for place, kind in enumerate(records.kinds):
        if kind != "included":
            found[kind] = (records.label == 1) | (records.kind == place)
    return found
