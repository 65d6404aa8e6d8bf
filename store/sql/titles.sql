-- The statements of a run's titles.db (store/titles.py).

-- name: create
CREATE TABLE title(item TEXT PRIMARY KEY, title TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- name: insert
INSERT OR IGNORE INTO title(item, title) VALUES (?, ?);

-- name: of_items
SELECT item, title FROM title WHERE item IN (SELECT value FROM json_each(?));
