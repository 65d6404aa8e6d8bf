-- The statements of the paper database, by name.

-- name: application_id
PRAGMA application_id;
-- name: set_application_id
PRAGMA application_id = 0x45564C44;
-- name: cache
PRAGMA cache_size = -65536;
-- name: tables
SELECT count(*) FROM sqlite_schema;
-- name: data_version
PRAGMA data_version;
-- name: begin
BEGIN IMMEDIATE;
-- name: commit
COMMIT;
-- name: rollback
ROLLBACK;
-- name: meta
SELECT value FROM meta WHERE key = ?;
-- name: set_meta
INSERT INTO meta (key, value) VALUES (?1, ?2)
ON CONFLICT (key) DO UPDATE SET value = ?2 WHERE value <> ?2;
-- name: forget
DELETE FROM meta WHERE key = ?;

-- Writing ---------------------------------------------------------------------------

-- name: kept
SELECT id, pmid, doi, title, abstract, authors, journal, year
FROM papers WHERE id = ?;
-- name: id_by_pmid
SELECT id FROM papers WHERE pmid = ?;
-- name: id_by_doi
SELECT id FROM papers WHERE doi = ?;
-- name: last_id
SELECT coalesce(max(id), 0) FROM papers;
-- name: kept_by_ids
SELECT id, pmid, doi, title, abstract, authors, journal, year FROM papers
WHERE pmid IN (SELECT value FROM json_each(?1))
OR doi IN (SELECT value FROM json_each(?2));
-- name: kept_by_title
SELECT papers.id, pmid, doi, title, abstract, authors, journal, year FROM paper_titles
JOIN papers ON papers.id = paper_titles.paper_id
LEFT JOIN paper_sources AS made ON made.paper_id = papers.id
    AND made.source = ?3 AND made.source_id = ?4
WHERE paper_titles.title_norm = ?1 AND (made.paper_id IS NOT NULL OR papers.year IS ?2)
ORDER BY made.paper_id IS NULL, papers.id LIMIT 1;
-- name: add
INSERT INTO papers (id, pmid, doi, title, abstract, authors, journal, year)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);
-- name: fill
UPDATE papers SET pmid = ?2, doi = ?3, title = ?4, abstract = ?5, authors = ?6,
    journal = ?7, year = ?8
WHERE id = ?1;
-- name: index
INSERT INTO papers_fts (rowid, title, abstract) VALUES (?, ?, ?);
-- name: unindex
INSERT INTO papers_fts (papers_fts, rowid, title, abstract) VALUES ('delete', ?, ?, ?);
-- name: add_title
INSERT OR IGNORE INTO paper_titles (paper_id, title_norm, length) VALUES (?, ?, ?);
-- name: add_source
INSERT OR IGNORE INTO paper_sources (paper_id, source, source_id) VALUES (?, ?, ?);

-- Reading ---------------------------------------------------------------------------

-- name: papers
SELECT id, pmid, doi, title, abstract, authors, journal, year
FROM papers ORDER BY id;
-- name: titles
SELECT paper_id, title_norm FROM paper_titles ORDER BY paper_id, title_norm;
-- name: titles_of
SELECT title_norm FROM paper_titles WHERE paper_id = ? ORDER BY title_norm;
-- name: titles_within
SELECT paper_id, title_norm FROM paper_titles
WHERE length BETWEEN ? AND ? ORDER BY length, paper_id, title_norm;
-- name: n_papers
SELECT count(*) FROM papers;
-- name: counts
SELECT count(*), count(pmid), count(doi), sum(abstract = ''), sum(year IS NULL)
FROM papers;
-- name: ids_by_title
SELECT paper_id FROM paper_titles WHERE title_norm = ? ORDER BY paper_id;
-- name: search
SELECT papers.id FROM papers_fts
JOIN papers INDEXED BY papers_years ON papers.id = papers_fts.rowid
WHERE papers_fts MATCH ?1 AND (papers.year IS NULL OR papers.year BETWEEN ?2 AND ?3)
AND (?5 OR papers.id NOT IN (
    SELECT id FROM papers AS reviews WHERE reviews.doi GLOB '10.1002/14651858*'
))
ORDER BY bm25(papers_fts, 2.0, 1.0), papers.id LIMIT ?4;
-- name: n_hits
SELECT count(*) FROM papers_fts WHERE papers_fts MATCH ?;
-- name: fits
SELECT 1 FROM papers_fts WHERE papers_fts MATCH ?1 AND rowid = ?2;
