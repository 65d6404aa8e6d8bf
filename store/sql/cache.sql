-- The statements of cache.db (store/cache.py).

-- name: application_id
PRAGMA application_id;
-- name: version
PRAGMA user_version;
-- name: set_application_id
PRAGMA application_id = 0x45564C43;
-- name: set_version
PRAGMA user_version = 1;
-- name: auto_vacuum
PRAGMA auto_vacuum = INCREMENTAL;
-- name: journal_mode
PRAGMA journal_mode = WAL;
-- name: synchronous
PRAGMA synchronous = NORMAL;
-- name: timeout
PRAGMA busy_timeout = 2000;
-- name: begin
BEGIN IMMEDIATE;
-- name: commit
COMMIT;
-- name: rollback
ROLLBACK;

-- The body comes last: whatever else is read of a row need not step over it.
-- name: create_entry
CREATE TABLE entry(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  model TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  run TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  used_us INTEGER NOT NULL,
  hits INTEGER NOT NULL,
  form TEXT NOT NULL,
  status INTEGER NOT NULL,
  headers BLOB NOT NULL,
  enc INTEGER NOT NULL,
  blen INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
-- name: create_entry_used
CREATE INDEX entry_used ON entry(used_us);

-- name: find
SELECT form, status, headers, enc, blen, body FROM entry WHERE key = ?;
-- name: put
INSERT INTO entry(key, model, endpoint, run, created_us, used_us, hits, form, status,
                  headers, enc, blen, body)
VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)
ON CONFLICT(key) DO UPDATE SET
  run = excluded.run, created_us = excluded.created_us,
  used_us = max(used_us, excluded.used_us), form = excluded.form,
  status = excluded.status, headers = excluded.headers, enc = excluded.enc,
  blen = excluded.blen, body = excluded.body;
-- name: use
UPDATE entry SET hits = hits + ?, used_us = max(used_us, ?) WHERE key = ?;

-- name: groups
SELECT model, endpoint, count(*), sum(length(body)), min(created_us), max(created_us),
       sum(hits)
FROM entry WHERE ?1 IS NULL OR model = ?1
GROUP BY model, endpoint ORDER BY model, endpoint;
-- name: count_entries
SELECT count(*) FROM entry WHERE ?1 IS NULL OR model = ?1;
-- name: delete_unused
DELETE FROM entry WHERE used_us < ?2 AND (?1 IS NULL OR model = ?1);
-- name: delete_oldest
DELETE FROM entry WHERE id IN (
  SELECT id FROM entry WHERE ?1 IS NULL OR model = ?1 ORDER BY used_us, id LIMIT ?2
);
-- name: size
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size;
-- name: free_pages
PRAGMA freelist_count;
-- name: vacuum
PRAGMA incremental_vacuum(4096);
-- name: checkpoint
PRAGMA wal_checkpoint(TRUNCATE);
