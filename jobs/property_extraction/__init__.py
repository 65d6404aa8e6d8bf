"""Material properties from papers: extraction, scoring by rubric, aliases."""
