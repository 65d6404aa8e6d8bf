"""Planning, scheduling, limits, model clients and the command line.

The modules below are the public interface; import contracts enforce it. All other
modules are internal and change without notice.

For authors of jobs:

- `job`: the base class `Job`, with its stages, tasks, answers, inputs and importers
- `labelling`: what people can label in a run
- `job_faults`: turns exceptions of a job's methods into values
- `messages`: requests, replies and schemas
- `prompts`: prompts as data
- `structured`: the schema of a reply, from a model of its fields
- `scorecard`: metrics, verdicts, tables, figures and findings that a scoring returns
- `evaluation`: how metrics follow from numbers, for redacted bundles
- `errors`: `UsageError` and `DatasetError`, which end in one sentence
- `registry`: finds installed jobs and their outlines
- `fingerprint`: hashes of inputs and requests
- `json_entries`: entries of JSON and JSON lines
- `imports.forms`, `imports.records`: replies in files of other tools
- `table_files`: tables as CSV, JSON lines and Parquet
- `money.tokens`: token counts of texts

For the code that jobs share (commands, comparisons, reports), in addition:

- `added_stages`: stages that were added to a run
- `cli.arguments`, `cli.console`: options and output that commands share
- `cli.json_forms`, `cli.json_runs`: types of the objects that `--json` prints
- `table_rendering`: tables for a terminal, Markdown and LaTeX
- `score.scoring`, `score.repeat`, `score.render`, `score.notable`: scoring a run again
  or as recorded, and the content of reports
- `export`: the rows that an export writes
- `reply_labels`: scoring against labels that say whether replies are correct
- `sent_requests`: prompts and parameters of a run's requests
- `bundle.manifest`, `bundle.verify`: a bundle that is verified, and read while it is
- `certificates`: certificates that are computed again, with and without texts
- `model_names`: names of models
- `estimate.estimate`: estimates of calls, tokens, cost and time
- `matrix`: runs of one file
- `run.early_stopping`: scores of an unfinished run, for a decision to stop it

For programs that import no job, such as the monitor: `python -m runner.compute`, which
they start as a process. They import nothing of this package.
"""
