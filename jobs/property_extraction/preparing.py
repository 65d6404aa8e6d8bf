"""What `siftlog prepare property-extraction` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.property_extraction.aliases.preparing import AliasFolder, prepared_aliases
from jobs.property_extraction.linting.lint import lint
from jobs.property_extraction.settings import Settings
from runner.job import Prepared

SUBCOMMANDS: Mapping[str, Callable[[Settings], Prepared | AliasFolder]] = {
    "aliases": prepared_aliases,
    "lint": lint,
}
"""By the word that follows the job's name."""
