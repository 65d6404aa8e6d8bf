-- The paper database, for searches of agents and look-ups of truth papers.

CREATE TABLE papers (
    id INTEGER PRIMARY KEY,
    pmid TEXT UNIQUE,        -- normal form; NULL: none
    doi TEXT UNIQUE,         -- normal form; NULL: none
    title TEXT NOT NULL,     -- the first that was seen; '': none
    abstract TEXT NOT NULL,
    authors TEXT NOT NULL,   -- parted by '; '
    journal TEXT NOT NULL,
    year INTEGER             -- NULL: none
);
CREATE INDEX papers_years ON papers (id, year); -- a search reads no texts for years
CREATE TABLE paper_titles (  -- every distinct title of a paper
    paper_id INTEGER NOT NULL REFERENCES papers (id),
    title_norm TEXT NOT NULL,
    length INTEGER NOT NULL, -- of title_norm, in characters
    PRIMARY KEY (paper_id, title_norm)
) WITHOUT ROWID;
CREATE INDEX paper_titles_by_length ON paper_titles (length);
CREATE INDEX paper_titles_by_title ON paper_titles (title_norm);
CREATE TABLE paper_sources ( -- which records made a paper
    paper_id INTEGER NOT NULL REFERENCES papers (id),
    source TEXT NOT NULL,    -- name of the file
    source_id TEXT NOT NULL, -- of the record in it; its number where it has none
    PRIMARY KEY (paper_id, source, source_id)
) WITHOUT ROWID;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,    -- schema_version, content_hash
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIRTUAL TABLE papers_fts USING fts5 (
    title, abstract,
    content = 'papers', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Writers of papers update the index too: a trigger would write it row by row, which
-- takes longer than the rest of an import. This is the size, in bytes, of the buffer of
-- pending index entries.
INSERT INTO papers_fts (papers_fts, rank) VALUES ('hashsize', 16777216);
