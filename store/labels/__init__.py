"""Labels by people: their events, the logs that hold them, and the fold over these.

- `events`: what a label log records
- `fold`: `LabelSet`, the state of the labels; pure
- `folder`: a folder of label logs, read again and again as it grows
- `writer`: `LabelWriter`, one session of one author

Nothing is imported by this module.
"""
