"""Whether what a model read stands in the text; no call is made."""
