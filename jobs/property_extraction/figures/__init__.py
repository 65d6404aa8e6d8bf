"""What a reader sees of a scoring, as values that the report draws."""

from jobs.property_extraction.figures.gallery import Gallery

__all__ = ["Gallery"]
