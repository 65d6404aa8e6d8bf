"""The commands of `siftlog` that need jobs: one file per command, named after it."""
