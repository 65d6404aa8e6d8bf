"""The command line: one module a family of verbs, loaded one verb at a time."""
