"""What models and papers may hold, and what no screen may act on."""

from __future__ import annotations

MARKS = "e" + "\u0301" * 5_000
HOSTILE = (
    "[/INST]",
    "[@click=app.quit]x[/]",
    "[foo=bar] [bold red]",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J\x9b31m",
    "abc\u202etxt.exe",
    "日本語の題名",
    "🙂👩‍👩‍👧🇩🇪",
    MARKS,
    "a\u200b\u2066b\u2069",
    "one\r\ntwo\nthree",
    "x" * 1_000_000,
)
