"""How models and steps are called in file names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

_UNSAFE = re.compile(r"^[.-]|[^A-Za-z0-9._-]")

_TAKEN = re.compile(r"|figures|.*\.(csv|db|html|json|jsonl|txt)", re.IGNORECASE)
"""Names that a scoring's own files could have; a model may be called so."""

LONGEST_SLUG = 100
"""Characters; most file systems take names of 255 bytes, with what comes after it."""


def slugs(models: Iterable[str]) -> dict[str, str]:
    """How each model is called in file names; two models never share a name.

    Nor do two whose names differ in upper and lower case alone, which are one file on
    some systems.
    """
    plain = {model: _UNSAFE.sub("_", model) for model in models}
    uses = Counter(slug.lower() for slug in plain.values())
    return {
        model: slug
        if uses[slug.lower()] == 1
        and len(slug) <= LONGEST_SLUG
        and not _TAKEN.fullmatch(slug)
        else f"{slug[:LONGEST_SLUG] or '_'}-{sha256(model.encode()).hexdigest()[:6]}"
        for model, slug in plain.items()
    }
