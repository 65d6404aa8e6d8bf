"""Imported by the fork server alone: what each forked command would do anew.

All modules that a run imports are there, and the garbage collector has looked at them,
so that a command collects nothing but its own.
"""

from __future__ import annotations

import gc

import certifi

from jobs.paper_investigation import job
from runner import imported_answers
from runner.cli import estimate, run, run_steps, shards
from runner.clients import http_client
from runner.money.prices import table
from runner.run import launch

LOADED = (
    *(certifi, job, imported_answers, estimate, run, run_steps, shards),
    *(http_client, launch),
)

table()
gc.collect()
gc.freeze()
