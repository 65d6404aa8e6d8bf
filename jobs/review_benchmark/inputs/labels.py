"""Reads what people say of conclusions: whether they are alike."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.dataset import Label

COLUMNS = ("cochrane_id", "model", "similar")


def read_labels(
    path: Path, reviews: AbstractSet[str], noticed: InputFindings
) -> tuple[Label, ...]:
    """The labels in a CSV file; a row without one is passed over.

    So `verdicts.csv` of a scoring is such a file once its column `similar` is filled.

    Args:
        path: the file.
        reviews: ids of those that there are.
        noticed: learns of columns that are not read.

    Raises:
        DatasetError: the file or a row is off, or a conclusion has two labels.
    """
    found: dict[tuple[str, str], Label] = {}
    for row in read_csv(path, COLUMNS, noticed=noticed):
        if not row.has("similar"):
            continue
        review, model = row.text("cochrane_id"), row.text("model")
        if review not in reviews:
            raise row.error(
                f"cochrane_id is {review!r}, which has no ground truth (correct it or "
                "remove the row)"
            )
        if (review, model) in found:
            raise row.error(f"{review} of {model} has a label already (remove one)")
        found[review, model] = Label(
            review=review, model=model, similar=bool(row.label("similar"))
        )
    return tuple(found.values())
