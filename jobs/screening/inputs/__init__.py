"""Reads what prepare and explain go by: tables, records, exclusions, criteria."""
