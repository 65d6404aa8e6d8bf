"""Planning, scheduling, limits, model clients and the command line.

What others may import is declared here; import contracts hold them to it. All other
modules are how the runner works, and change without notice.

For authors of jobs:

- `job`: the base class `Job`, with its stages, tasks, answers, inputs and importers
- `job_faults`: what a parser or another method that raises becomes
- `messages`: requests, replies and schemas
- `prompts`: prompts as data
- `structured`: the schema of a reply, from a model of its fields
- `scorecard`: metrics, verdicts, tables, figures and findings that a scoring returns
- `errors`: `UsageError` and `DatasetError`, which end in one sentence
- `registry`: how an installed job is found, and its outline
- `fingerprint`: hashes of inputs and requests
- `json_entries`: entries of JSON and JSON lines
- `table_files`: tables as CSV, JSON lines and Parquet
- `money.tokens`: how many tokens a text takes

For the code that jobs share (commands, comparisons, reports), in addition:

- `cli.arguments`, `cli.console`: options that commands share, and what they print
- `table_rendering`: tables for a terminal, Markdown and LaTeX
- `score.scoring`, `score.repeat`, `score.render`: scoring a run, now or as it was
  recorded, and what reports are made of
- `export`: the rows that an export writes
- `estimate.estimate`: what a run would take
- `matrix`: runs of one file
- `run.early_stopping`: scores of an unfinished run, for a decision to stop it

For programs that import no job, such as the monitor: `python -m runner.compute`, which
they start as a process. They import nothing of this package.
"""
