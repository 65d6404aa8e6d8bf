-- The statements of a scoring's verdicts.db (store/verdicts.py).

-- name: create
CREATE TABLE verdict(
  task INTEGER NOT NULL, value TEXT NOT NULL, expected TEXT NOT NULL,
  correct INTEGER, rule TEXT NOT NULL
) STRICT;

-- name: create_index
CREATE INDEX verdict_task ON verdict(task);

-- name: insert
INSERT INTO verdict(task, value, expected, correct, rule) VALUES (?, ?, ?, ?, ?);

-- name: of_task
SELECT task, value, expected, correct, rule FROM verdict WHERE task = ? ORDER BY rowid;

-- name: all
SELECT task, value, expected, correct, rule FROM verdict ORDER BY task, rowid;

-- name: scores
SELECT task, count(*), count(correct), coalesce(sum(correct), 0), value, rule,
  min(rowid)
FROM verdict WHERE task IN (SELECT value FROM json_each(?)) GROUP BY task;

-- name: wrong
SELECT DISTINCT task FROM verdict WHERE correct = 0 ORDER BY task;
