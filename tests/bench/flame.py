"""A flame graph of one siftlog command: where its CPU time goes, as an SVG.

    python -m tests.bench.flame [OPTIONS] OUT.svg TITLE WORDS...

runs `siftlog WORDS...` in this process and samples its stacks. A timer of CPU time
interrupts it; the stack of the thread that was running counts by the CPU that this
thread used since its last sample, so threads that wait count nothing. Other threads
than the main one are seen where they give up the interpreter's lock: their sums are
right, their details are rough. The script needs nothing but the standard library, and
so measures other versions too, by path and `PYTHONPATH`. Options:

    --under NAME   only what runs below functions of that qualified name; may be given
                   several times
    --per N UNIT   state times per unit of work, such as 6000 calls
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from importlib import metadata
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, TypeAlias

EVERY_S: Final = 0.001
"""CPU time between two samples: some thousand a run, for 2 % of its time."""

BUSY: Final = 0.6
"""Share of the CPU since the last sample from which a thread counts as the one that was
running. Another one, which waits for the interpreter's lock, gave it up some time ago:
its stack is no longer the one that used the CPU."""

WIDTH: Final = 1200
ROW: Final = 17
HEAD: Final = 66
LETTER: Final = 6.3
"""Pixels of a letter, to cut names to their boxes."""
LEAST_SHARE: Final = 0.003
"""Narrower frames are left out, so that the file stays small."""

LAYERS: Final = {
    "store": ("event log", "#e8a33d"),
    "runner.engine": ("engine", "#d9573f"),
    "runner.limits": ("engine", "#d9573f"),
    "runner.money": ("engine", "#d9573f"),
    "runner.clients": ("client", "#8a6fc0"),
    "runner": ("rest of runner", "#e58b7c"),
    "jobs": ("job", "#6aa84f"),
    "aiohttp": ("HTTP library", "#5b8dd6"),
    "httpx": ("HTTP library", "#5b8dd6"),
    "httpx_aiohttp": ("HTTP library", "#5b8dd6"),
    "yarl": ("HTTP library", "#5b8dd6"),
    "multidict": ("HTTP library", "#5b8dd6"),
    "asyncio": ("asyncio", "#58a7a0"),
}
"""Legend and colour by package; the longest name that fits decides."""
OTHER: Final = ("other libraries", "#b0aca3")

Stack: TypeAlias = tuple[str, ...]
"""Names from the outermost frame to the innermost."""
Seconds: TypeAlias = dict[Stack, float]
"""CPU time by stack."""


@contextmanager
def sampling() -> Iterator[Seconds]:
    """Sample this process while the body runs; yield seconds of CPU by stack.

    Only on the main thread, which receives signals.
    """
    stacks: Seconds = defaultdict(float)
    used = _cpu_s()
    owed: dict[int, float] = defaultdict(float)
    names: dict[CodeType, str] = {}
    is_sampling = False

    def sample(_number: int, here: FrameType | None) -> None:
        nonlocal used, is_sampling
        if is_sampling:  # the signal came again while it was handled
            return
        is_sampling = True
        tops = {**sys._current_frames(), threading.get_ident(): here}
        before, used = used, _cpu_s()
        recent = {thread: used[thread] - before.get(thread, 0.0) for thread in used}
        busy_s = sum(recent.values())
        for thread, seconds in recent.items():
            owed[thread] += seconds
            if seconds > BUSY * busy_s and thread in tops:
                stacks[_stack(tops[thread], names)] += owed.pop(thread)
        is_sampling = False

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        yield stacks
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _cpu_s() -> dict[int, float]:
    """CPU time of every thread."""
    cpu_s = {}
    for thread in sys._current_frames():
        with suppress(OSError):  # it has just ended
            clock = time.pthread_getcpuclockid(thread)
            cpu_s[thread] = time.clock_gettime(clock)
    return cpu_s


def _stack(top: FrameType | None, names: dict[CodeType, str]) -> Stack:
    stack = []
    while top is not None:
        code = top.f_code
        if code not in names:
            module = top.f_globals.get("__name__", "?")
            names[code] = f"{module}:{code.co_qualname}"
        stack.append(names[code])
        top = top.f_back
    return tuple(reversed(stack))


def under(stacks: Seconds, functions: Collection[str]) -> Seconds:
    """Cut stacks off above the first of *functions*; drop those without any."""
    below: Seconds = defaultdict(float)
    for stack, weight in stacks.items():
        for i, name in enumerate(stack):
            if name.partition(":")[2] in functions:
                below[stack[i:]] += weight
                break
    return below


@dataclass(slots=True)
class Frame:
    """A function in one place of the call tree."""

    name: str
    seconds: float = 0.0  #: its own and those of all that it called
    calls: dict[str, Frame] = field(default_factory=dict)

    def wide(self, least_s: float) -> list[Frame]:
        """What it called, without the narrow ones."""
        return [frame for frame in self.calls.values() if frame.seconds >= least_s]

    def rows(self, least_s: float) -> int:
        """Rows that it and its calls need."""
        return 1 + max((f.rows(least_s) for f in self.wide(least_s)), default=0)


def tree(stacks: Seconds) -> Frame:
    """Merge stacks from the outermost frame on."""
    root = Frame("all")
    for stack, seconds in stacks.items():
        root.seconds += seconds
        frame = root
        for name in stack:
            frame = frame.calls.setdefault(name, Frame(name))
            frame.seconds += seconds
    return root


class Picture:
    """The SVG of a call tree: widths are CPU time, callers are below what they call."""

    def __init__(self, root: Frame, *, units: int, unit: str) -> None:
        """Draw *root*; state times per *unit*, of which the run had *units*."""
        self._root = root
        self._units = units
        self._unit = unit
        self._least_s = root.seconds * LEAST_SHARE
        self._height = HEAD + ROW * root.rows(self._least_s)

    def svg(self, title: str) -> str:
        """Return the file, *title* above the frames."""
        size = f"0 0 {WIDTH} {self._height + 8}"
        font = 'font-family="Verdana, sans-serif" font-size="10.5"'
        lead = (
            f"{self._time(self._root)} of CPU time; width is time, callers are below; "
            "point at a frame for its time"
        )
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" {font}>',
                '<rect width="100%" height="100%" fill="#fbfaf7"/>',
                f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
                f'<text x="10" y="39" fill="#555">{lead}</text>',
                *self._legend(),
                *self._boxes(self._root, 10.0, 1),
                "</svg>\n",
            )
        )

    def _time(self, frame: Frame) -> str:
        return f"{frame.seconds / self._units * 1e6:,.0f} us per {escape(self._unit)}"

    def _legend(self) -> Iterator[str]:
        x = 10.0
        for name, colour in dict.fromkeys((*LAYERS.values(), OTHER)):
            yield f'<rect x="{x:.0f}" y="47" width="11" height="11" fill="{colour}"/>'
            yield f'<text x="{x + 15:.0f}" y="56">{name}</text>'
            x += 30 + LETTER * len(name)

    def _boxes(self, frame: Frame, x: float, row: int) -> Iterator[str]:
        scale = (WIDTH - 20) / self._root.seconds
        width, y = frame.seconds * scale, self._height - ROW * row
        module, _, function = frame.name.partition(":")
        share = frame.seconds / self._root.seconds
        yield (
            f"<g><title>{escape(frame.name)}: {self._time(frame)}, {share:.1%}</title>"
            f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" '
            f'height="{ROW - 1}" fill="{_colour(module)}"/>'
        )
        name = (function or module).replace(".<locals>.", ".")
        if (letters := int((width - 4) / LETTER)) > 2:
            shown = name if len(name) <= letters else f"{name[: letters - 1]}\u2026"
            yield f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(shown)}</text>'
        yield "</g>"
        for call in sorted(frame.wide(self._least_s), key=lambda f: f.name):
            yield from self._boxes(call, x, row + 1)
            x += call.seconds * scale


def _colour(module: str) -> str:
    while module:
        if module in LAYERS:
            return LAYERS[module][1]
        module = module.rpartition(".")[0]
    return OTHER[1]


def main() -> None:
    """Run the command, then write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("title")
    parser.add_argument("--under", action="append", default=[], metavar="NAME")
    parser.add_argument("--per", nargs=2, default=("1", "run"), metavar=("N", "UNIT"))
    parser.add_argument("words", nargs=argparse.REMAINDER, help="those of siftlog")
    given = parser.parse_args()
    # imported here and by name: the version that is measured may be another one
    command = metadata.entry_points(group="console_scripts", name="siftlog")
    run = next(iter(command)).load()
    sys.argv = ["siftlog", *given.words]
    with sampling() as stacks, suppress(SystemExit):
        run()
    root = tree(under(stacks, given.under) if given.under else stacks)
    units, unit = given.per
    picture = Picture(root, units=int(units), unit=unit)
    given.out.write_text(picture.svg(given.title), "utf-8")


if __name__ == "__main__":
    main()
