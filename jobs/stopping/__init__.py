"""Screening a library to a stop with a guarantee: `siftlog screen`.

- `reading_order`: the order in which records are read, by a model, text similarity or
  at random
- `screening_fold`: label events -> records read, draws, the bound on recall
- `session`: one person's pass, in ranked order with random draws
- `certificate`, `certificate_page`: the proof of a stop, as a file and as pages
- `certificate_check`: recomputes a certificate: `siftlog verify`
- `simulation`: labels from a file instead of people
- `command`: the command
"""
