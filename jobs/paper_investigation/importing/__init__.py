"""Import of recorded responses, predictions and results of paper investigations."""

from jobs.paper_investigation.importing.forms import importer

__all__ = ["importer"]
