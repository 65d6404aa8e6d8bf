-- The statements of a scoring's verdicts.db (store/verdicts.py).

-- name: create
CREATE TABLE verdict(
  task INTEGER NOT NULL, value TEXT NOT NULL, expected TEXT NOT NULL,
  correct INTEGER, rule TEXT NOT NULL, grounded INTEGER
) STRICT;

-- name: create_index
CREATE INDEX verdict_task ON verdict(task);

-- name: insert
INSERT INTO verdict(task, value, expected, correct, rule, grounded)
VALUES (?, ?, ?, ?, ?, ?);

-- name: has_grounded
-- Files of older siftlogs do not have the column.
SELECT count(*) FROM pragma_table_info('verdict') WHERE name = 'grounded';

-- name: view
CREATE TEMP VIEW v AS
SELECT rowid AS n, task, value, expected, correct, rule, grounded FROM verdict;

-- name: older_view
CREATE TEMP VIEW v AS
SELECT rowid AS n, task, value, expected, correct, rule, NULL AS grounded FROM verdict;

-- name: of_task
SELECT task, value, expected, correct, rule, grounded FROM v WHERE task = ? ORDER BY n;

-- name: all
SELECT task, value, expected, correct, rule, grounded FROM v ORDER BY task, n;

-- name: in_order
SELECT task, value, expected, correct, rule FROM v ORDER BY n;

-- name: scores
SELECT task, count(*), count(correct), coalesce(sum(correct), 0),
  count(CASE WHEN grounded = 0 THEN 1 END), value, rule, min(n)
FROM v WHERE task IN (SELECT value FROM json_each(?)) GROUP BY task;

-- name: tasks_right
SELECT task FROM v GROUP BY task
HAVING count(correct) > 0 AND sum(correct) = count(correct) ORDER BY task;

-- name: tasks_wrong
SELECT DISTINCT task FROM v WHERE correct = 0 ORDER BY task;

-- name: tasks_ungrounded
SELECT DISTINCT task FROM v WHERE grounded = 0 ORDER BY task;
