"""LaTeX that tests see compile: by a strict parser always, by pdflatex where it is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PREAMBLE = r"""\documentclass{article}
\usepackage{booktabs,graphicx,longtable,siunitx}
\begin{document}
"""


def assert_compiles(tables: str, folder: Path) -> None:
    """Read *tables* with braces and environments matched, then set them."""
    walker = pytest.importorskip("pylatexenc.latexwalker")
    document = f"{PREAMBLE}{tables}\n\\end{{document}}\n"
    walker.LatexWalker(document, tolerant_parsing=False).get_latex_nodes()
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        return
    (folder / "tables.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert (folder / "tables.pdf").stat().st_size
