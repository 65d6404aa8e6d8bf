"""Writes a run in the forms of other programs: `siftlog export RUN --to FORM OUT`.

- `source`: what every form reads of a run: its tasks with requests, replies, verdicts
- `folder`: the new folder that a form fills
- one module for each form, with a function `write(source, folder)` that yields the
  files that the other program opens
"""

from typing import Final

FORMS: Final = {
    "inspect": "runner.exports.inspect_log",
    "hugging-face": "runner.exports.hugging_face",
    "every-eval-ever": "runner.exports.every_eval_ever",
    "mlflow": "runner.exports.mlflow_store",
    "ro-crate": "runner.exports.ro_crate",
}
"""Modules by the form's name on the command line."""
