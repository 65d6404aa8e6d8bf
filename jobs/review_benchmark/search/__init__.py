"""From a plan of queries to candidates: FTS5 queries, hits, one fused order."""
