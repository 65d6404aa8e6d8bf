"""One pass over the answers of a run: what was predicted of each paper."""
