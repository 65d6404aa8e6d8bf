"""What a change of aliases gains and loses, row by row."""
