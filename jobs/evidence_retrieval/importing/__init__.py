"""Import of predictions and rankings that were made elsewhere.

`forms` has the importer, `given` the parser of its answers and `sheet` what is scored.
Nothing is gathered here: the parser belongs to the stages, which a run's first call
waits for, and the others bring numerical libraries.
"""
