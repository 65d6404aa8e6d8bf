"""The methods text of a run, and the check of a manuscript that quotes it.

Every number of the text is a reference: a name, and a value that is computed from the
run's log. `facts` computes them, `text` says them, `markup` and `docx` write them with
their names, and `check` compares a manuscript with a log.
"""
