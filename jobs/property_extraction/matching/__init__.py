"""Pairs predicted with true values, one to one."""
