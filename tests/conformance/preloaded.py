"""Imported by the fork server alone: what each forked command would do anew.

All modules that a run imports are there, and the garbage collector has looked at them,
so that a command collects nothing but its own.
"""

from __future__ import annotations

import gc

import certifi

import jobs.paper_investigation
import runner.cli.calls
import runner.cli.sharding
import runner.launching.launch
from runner.clients import openai_compatible
from runner.money.prices import table

LOADED = (
    certifi,
    jobs.paper_investigation,
    runner.cli.calls,
    runner.cli.sharding,
    openai_compatible,
    runner.launching.launch,
)

table()
gc.collect()
gc.freeze()
