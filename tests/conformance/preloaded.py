"""Imported by the fork server alone: what each forked command would do anew.

All modules that a run imports are there, and the garbage collector has looked at them,
so that a command collects nothing but its own.
"""

from __future__ import annotations

import gc

import certifi

import jobs.paper_investigation.job
import runner.cli.import_
import runner.cli.resume
import runner.cli.run
import runner.cli.sharding
import runner.clients.openai_compatible
import runner.launching.launch
from runner.money.prices import table

LOADED = (
    certifi,
    jobs.paper_investigation.job,
    runner.cli.import_,
    runner.cli.resume,
    runner.cli.run,
    runner.cli.sharding,
    runner.clients.openai_compatible,
    runner.launching.launch,
)

table()
gc.collect()
gc.freeze()
