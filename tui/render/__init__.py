"""Renders what was read: pure functions of a snapshot and of the room it may fill."""
