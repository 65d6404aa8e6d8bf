"""Typed fields: declared, requested by schema, and read from replies with quotes."""
