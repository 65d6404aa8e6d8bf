"""The commands of `siftlog` that need jobs: one file a command, named like it."""
