"""The job of all roles, under the name that an entry point gives."""

from __future__ import annotations

from runner.testing import PanelJob

job = PanelJob()
