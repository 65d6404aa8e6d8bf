"""Every number of a sheet with its subset and definition, and how sure it is."""
