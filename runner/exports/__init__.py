"""Writes a run in the forms of other programs: `siftlog export RUN --to FORM OUT`.

- `source`: what every form reads of a run: its tasks with requests, replies, verdicts
- `target`: the new folder, or the new file, that a form fills
- one module for each form, with a function `write(source, folder)` that yields the
  files that the other program opens; and, if the form can be one file, a function
  `write_file(source, path)`
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportForm:
    """A form of another program."""

    module: str
    endings: tuple[str, ...] = ()
    """Endings of a file that holds everything; with any other OUT is a folder."""


FORMS: Final = {
    "inspect": ExportForm(
        module="runner.exports.inspect_log", endings=(".eval", ".json")
    ),
    "hugging-face": ExportForm(module="runner.exports.hugging_face"),
    "every-eval-ever": ExportForm(module="runner.exports.every_eval_ever"),
    "mlflow": ExportForm(module="runner.exports.mlflow_store"),
    "ro-crate": ExportForm(module="runner.exports.ro_crate", endings=(".zip",)),
}
"""By the form's name on the command line."""
