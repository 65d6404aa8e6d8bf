"""Imported by the fork server alone: what each forked command would do anew.

All modules that a run imports are there, and the garbage collector has looked at them,
so that a command collects nothing but its own.
"""

from __future__ import annotations

import gc

import certifi

from jobs.paper_investigation import job
from runner.cli import import_, resume, run, sharding
from runner.clients import openai_compatible
from runner.launching import launch
from runner.money.prices import table

LOADED = (certifi, job, import_, resume, run, sharding, openai_compatible, launch)

table()
gc.collect()
gc.freeze()
