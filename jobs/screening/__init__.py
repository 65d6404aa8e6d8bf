"""Would a model lose eligible papers, and how much reading would it save?"""
