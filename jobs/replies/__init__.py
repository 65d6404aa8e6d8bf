"""Replies to prompts that other tools have sent, or that are sent again here."""
