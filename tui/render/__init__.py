"""Renders data as pure functions of a snapshot and the available space."""
