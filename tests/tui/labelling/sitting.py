"""Sessions that are killed and begun again, in a process that has all it needs.

    python -m tests.tui.labelling.sitting screen|web FOLDER COUNT

Each session is a fork, whose number is in FOLDER/pid; the next follows when it is dead.
The first that ends by itself is the last.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.tui.labelling.desks import desk_over, items
from tui.labelling.app import label_on_screen
from tui.labelling.web import label_in_browser


async def sit(kind: str, folder: Path, count: int) -> None:
    """Label, by one of the front ends."""
    async with desk_over(items(count), folder / "labels") as desk:
        if kind == "screen":
            await label_on_screen(desk, "ann")
        else:
            address = folder / "address"

            def say(line: str) -> None:
                address.with_suffix(".new").write_text(line.split(maxsplit=1)[0])
                address.with_suffix(".new").replace(address)

            await label_in_browser(desk, "ann", port=0, say=say)


def main() -> None:
    """Begin sessions until one ends by itself."""
    kind, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    while True:
        child = os.fork()
        if not child:
            (folder / "pid").write_text(str(os.getpid()))
            asyncio.run(sit(kind, folder, count))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
