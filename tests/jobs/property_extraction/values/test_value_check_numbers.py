"""The values of real files: how they read, and how many of them agree."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.settings import Numbers
from jobs.property_extraction.values.disagreement import disagreements
from jobs.property_extraction.values.number import read_number
from jobs.property_extraction.values.unit_row import UnitRow
