"""Reads stored results that are to be verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.errors import DatasetError


def read_stored(path: Path) -> Mapping[str, Any]:
    """A `summary.json`: an object, of which nothing else is asked here.

    Raises:
        DatasetError: the file cannot be read, is not JSON, or is no object.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror} (check the path).") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path.name}: not UTF-8 text (save it as such).") from error
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{path.name} line {error.lineno}: not valid JSON: {error.msg} "
            "(correct it)."
        ) from error
    if not isinstance(content, dict):
        raise DatasetError(
            f"{path.name}: not an object of results (give the summary.json of a run)."
        )
    return content
