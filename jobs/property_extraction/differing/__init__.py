"""What a change of aliases gains and loses, row by row."""

from jobs.property_extraction.differing.booking import Bookable, booked
from jobs.property_extraction.differing.rows import bookable, is_of_aliases

__all__ = ["Bookable", "bookable", "booked", "is_of_aliases"]
