"""The command line: one module per command family, loaded on demand."""
