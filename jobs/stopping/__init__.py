"""Screening a library to a stop with a guarantee: `siftlog screen`.

- `reading_order`: the order in which records are read, from a run, texts or chance
- `screening_fold`: label events -> what is read, the draws, the bound on recall
- `session`: one person's pass, in ranked order with random draws
- `certificate`, `certificate_page`: what a stop proves, as a file and as pages
- `certificate_check`: computes a certificate again: `siftlog verify`
- `simulation`: a labelled set instead of people
- `command`: the command
"""
