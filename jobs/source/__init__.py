"""A document's file as text with pages, whatever its format."""
