"""Import of predictions and rankings that were made elsewhere."""

from jobs.evidence_retrieval.importing.forms import importer
from jobs.evidence_retrieval.importing.given import read_given
from jobs.evidence_retrieval.importing.sheet import given_sheet

__all__ = ["given_sheet", "importer", "read_given"]
