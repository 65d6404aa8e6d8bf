"""Finds out by a few cheap calls how an endpoint speaks; serves `siftlog doctor`."""
