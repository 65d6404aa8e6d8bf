"""Files with the names and columns that users of the job expect."""
