"""What a task carries: where in the text it reads.

The place may come from a model's reply, so it cannot be derived from the task's key.
"""

from __future__ import annotations

from typing import Final

import msgspec

from jobs.inputs.documents import TextSpan
from jobs.review_benchmark.extracting.cutting.sections import Section, Sections

_places: Final = msgspec.json.Decoder(dict[Section, tuple[int, int]])


def carrying(spans: Sections) -> str:
    """Sections, as the context of a task."""
    places = {name: (span.start, span.end) for name, span in spans.items()}
    return msgspec.json.encode(places).decode()


def carried(context: str | None) -> dict[Section, TextSpan]:
    """The sections in a context; raise `KeyError` where there are none."""
    if context is None:
        raise KeyError("context")
    places = _places.decode(context)
    return {
        name: TextSpan(start=start, end=end) for name, (start, end) in places.items()
    }
