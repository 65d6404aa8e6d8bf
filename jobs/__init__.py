"""The jobs that ship with siftlog, and the metrics they score with."""
