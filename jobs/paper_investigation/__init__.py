"""Which variants does a paper study, and does the model understand them?"""
