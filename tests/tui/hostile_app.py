"""Shows hostile tasks on the terminal: `python -m tests.tui.hostile_app`."""

from __future__ import annotations

from tests.tui.fake_tasks import FakeTasks, TasksApp, watching
from tui.screens.tasks import TasksScreen

#: What a terminal would do: retitle its window, fill the clipboard, clear the screen.
ATTACKS = ("\x1b]0;pwned\x07", "\x1b]52;c;cHduZWQ=\x07", "\x9b2J\x1b[2Jpwned-c1")


def main() -> None:
    """Run it until somebody leaves with ctrl+q."""
    source = FakeTasks(100)
    for number in range(1, 101):
        attack = ATTACKS[number % len(ATTACKS)]
        fields = ("key", "stage", "model", "error", "reason")
        source.changes[number] = dict.fromkeys(fields, attack)
    source.texts = dict.fromkeys((11, 12, 13, 14), "".join(ATTACKS))
    TasksApp(TasksScreen(watching(source))).run()


if __name__ == "__main__":
    main()
