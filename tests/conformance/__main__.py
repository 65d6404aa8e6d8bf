"""Prints the conformance matrix as a table: `python -m tests.conformance`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from runner.simulate.dialects import DIALECTS
from tests.conformance.promises import PROMISES, Case


def main(names: list[str]) -> int:
    """Print a row a dialect as it is done; 1 where a promise is broken."""
    broken = 0
    print(f"| dialect | {' | '.join(PROMISES)} |")
    print("|---" * (len(PROMISES) + 1) + "|")
    for name in names or sorted(DIALECTS):
        figures = []
        with tempfile.TemporaryDirectory() as folder:
            case = Case(name, Path(folder))
            for title, promise in PROMISES.items():
                try:
                    figures.append(promise(case))
                except AssertionError as error:
                    broken += 1
                    figures.append("**broken**")
                    print(f"{name}, {title}: {error}", file=sys.stderr)
        print(f"| {name} | {' | '.join(figures)} |", flush=True)
    return min(broken, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
