"""Formats of other programs that siftlog both reads and writes.

A module for each has the names and values that `runner.imports` and `runner.exports`
share.
"""
