"""baseline/lexical: a model that knows the request's words and nothing else."""
