-- The verdicts of one scoring in a temporary database (store/notable.py).

-- name: unsafe
PRAGMA journal_mode = OFF;

-- name: create
CREATE TABLE verdict(
  stage TEXT NOT NULL, key TEXT NOT NULL, part TEXT NOT NULL, model TEXT NOT NULL,
  task INTEGER NOT NULL, value TEXT NOT NULL, expected TEXT NOT NULL,
  rule TEXT NOT NULL, label TEXT, correct INTEGER, confidence REAL,
  is_grounded INTEGER, is_unparsed INTEGER NOT NULL
) STRICT;

-- name: insert
INSERT INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: items
SELECT min(rowid), stage, key, part, count(DISTINCT model), count(*),
  sum(correct IS 1), sum(correct IS 0 AND NOT is_unparsed) AS wrong,
  count(DISTINCT CASE WHEN correct IS 0 AND NOT is_unparsed THEN model END),
  count(DISTINCT CASE WHEN correct IS 0 AND NOT is_unparsed THEN label END),
  count(DISTINCT label) AS labels,
  max(CASE WHEN correct IS 0 AND NOT is_unparsed THEN confidence END),
  sum(is_grounded IS 0) AS ungrounded, sum(is_unparsed) AS unparsed
FROM verdict GROUP BY stage, key, part
HAVING wrong OR ungrounded OR unparsed OR labels > 1
ORDER BY min(rowid);

-- name: of_keys
SELECT stage, key, part, model, task, value, expected, rule, correct, confidence,
  is_grounded, is_unparsed
FROM verdict WHERE key IN (SELECT value FROM json_each(?)) ORDER BY rowid;

-- name: unparsed
SELECT model, rule, count(*), min(rowid) FROM verdict WHERE is_unparsed
GROUP BY model, rule ORDER BY count(*) DESC, min(rowid) LIMIT ?;
