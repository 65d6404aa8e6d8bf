"""Tests whether an agent can rebuild a Cochrane review's list of included studies."""
