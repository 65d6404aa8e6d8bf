"""The files of a scoring, with the names and columns that their users expect."""
