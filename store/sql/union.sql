-- What the union of a run's logs has beside a log's own tables (store/union). Its events
-- are those of the logs, with tasks numbered anew; what is not derived from them says
-- where they came from.

-- name: is_union
SELECT count(*) FROM sqlite_schema WHERE name = 'merged';

-- name: create_merged
CREATE TABLE merged(                -- how far each log has been taken in
  part INTEGER PRIMARY KEY,
  log BLOB NOT NULL UNIQUE,         -- id of its first writer
  seq INTEGER NOT NULL,             -- its last event that is here
  link BLOB NOT NULL,               -- of that event's commit, in the log's own chain
  blobs_upto INTEGER NOT NULL       -- mark for `store.union.source`
) STRICT;
-- name: create_opening
CREATE TABLE opening(               -- whose writing an event's `epoch` means
  epoch INTEGER PRIMARY KEY,        -- below zero: those above are the union's own
  part INTEGER NOT NULL
) STRICT;
-- name: create_origin
CREATE TABLE origin(                -- where a stretch of a log begins, here and there:
  seq INTEGER PRIMARY KEY,          -- its events follow one another in both
  own_seq INTEGER NOT NULL
) STRICT;
-- name: create_numbered
CREATE TABLE numbered(              -- the number here of a task of a log
  part INTEGER NOT NULL, own INTEGER NOT NULL, task INTEGER NOT NULL,
  skip TEXT,                        -- why the log's own plan skips it
  PRIMARY KEY(part, own)
) WITHOUT ROWID, STRICT;
-- name: create_numbered_skip
CREATE INDEX numbered_skip ON numbered(part, task) WHERE skip IS NOT NULL;
-- name: create_identity
CREATE TABLE identity(              -- what makes a task itself, hashed
  id BLOB PRIMARY KEY, task INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

-- name: number_freely
-- Merging numbers all events in one place; to look for gaps would be a
-- fourteenth of its work, and verify tells them.
DROP TRIGGER event_dense;

-- Projections: derived, like those of `projections.sql` -------------------------------

-- name: drop_claim
DROP TABLE IF EXISTS claim;
-- name: create_claim
CREATE TABLE claim(                 -- a task as each of the logs sees it, if several do
  task INTEGER NOT NULL, part INTEGER NOT NULL, draft TEXT NOT NULL,
  sent_seq INTEGER,                 -- its attempt whose outcome the log does not know
  PRIMARY KEY(task, part)
) WITHOUT ROWID, STRICT;
-- name: create_claim_sent
CREATE INDEX claim_sent ON claim(task) WHERE sent_seq IS NOT NULL;
-- name: drop_reopened
DROP TABLE IF EXISTS reopened;
-- name: create_reopened
CREATE TABLE reopened(              -- how often a log put a final task back in the queue
  task INTEGER NOT NULL, part INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(task, part)
) WITHOUT ROWID, STRICT;
-- name: drop_part
DROP TABLE IF EXISTS part;
-- name: create_part
CREATE TABLE part(                  -- the run as a whole, as each of the logs sees it
  part INTEGER PRIMARY KEY, slices TEXT NOT NULL, state TEXT NOT NULL,
  limits TEXT NOT NULL
) STRICT;
-- name: drop_place
DROP TABLE IF EXISTS place;
-- name: create_place
CREATE TABLE place(                 -- first-stage tasks in the order of the whole plan
  place INTEGER PRIMARY KEY, task INTEGER NOT NULL
) STRICT;
-- name: rows_claim
SELECT * FROM claim ORDER BY task, part;
-- name: rows_reopened
SELECT * FROM reopened ORDER BY task, part;
-- name: rows_part
SELECT * FROM part ORDER BY part;
-- name: rows_place
SELECT * FROM place ORDER BY place;

-- Merging -----------------------------------------------------------------------------

-- name: known_log
SELECT part, seq, link, blobs_upto FROM merged WHERE log = ?;
-- name: add_log
INSERT INTO merged(log, seq, link, blobs_upto) VALUES (?, 0, ?, 0) RETURNING part;
-- name: count_logs
SELECT count(*) FROM merged;
-- name: took_in
UPDATE merged SET seq = ?, link = ?, blobs_upto = ? WHERE part = ?;
-- name: logs
SELECT part, log, seq, link FROM merged ORDER BY log;
-- name: marks
SELECT log, seq, blobs_upto FROM merged;
-- name: opening_of
SELECT o.epoch, o.part FROM writer AS w JOIN opening AS o ON o.epoch = w.epoch
WHERE w.writer = ?;
-- name: lowest_opening
SELECT min(0, coalesce(min(epoch), 0)) FROM opening;
-- name: add_opening
INSERT INTO opening(epoch, part) VALUES (?, ?);
-- name: add_writer
INSERT INTO writer(epoch, writer, opened_us) VALUES (?, ?, ?);
-- name: add_origin
INSERT INTO origin(seq, own_seq) VALUES (?, ?);
-- name: numbers_of
SELECT own, task FROM numbered
WHERE part = ? AND own IN (SELECT value FROM json_each(?));
-- name: add_number
INSERT INTO numbered(part, own, task, skip) VALUES (?, ?, ?, ?);
-- name: last_events
SELECT task, event_seq FROM task WHERE task IN (SELECT value FROM json_each(?));
-- name: skips
SELECT task, skip FROM numbered
WHERE part = ? AND skip IS NOT NULL AND task IN (SELECT value FROM json_each(?));
-- name: identified
-- Which of some names, 16 bytes each and written one after the other, are known.
WITH RECURSIVE name(at) AS (
  SELECT 1 UNION ALL SELECT at + 16 FROM name WHERE at + 16 < length(:names))
SELECT i.id, i.task FROM name CROSS JOIN identity AS i
WHERE i.id = substr(:names, name.at, 16);
-- name: add_identity
INSERT INTO identity(id, task) VALUES (?, ?);
-- name: add_blob
INSERT OR IGNORE INTO blob(sha256, enc, size, data) VALUES (?, ?, ?, ?);

-- Folding -----------------------------------------------------------------------------

-- name: openings
SELECT epoch, part FROM opening;
-- name: claims
SELECT task, part, draft FROM claim
WHERE task IN (SELECT value FROM json_each(?));
-- name: reopenings
SELECT task, part, n FROM reopened WHERE task IN (SELECT value FROM json_each(?));
-- name: add_reopening
INSERT INTO reopened(task, part, n) VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET n = n + 1;
-- name: set_claim
INSERT OR REPLACE INTO claim(task, part, draft, sent_seq) VALUES (?, ?, ?, ?);
-- name: movers
-- Who moved these tasks last, and thereby alone: with two of them there are claims.
SELECT e.seq, o.part FROM event AS e JOIN opening AS o ON o.epoch = e.epoch
WHERE e.seq IN (SELECT value FROM json_each(?));
-- name: precedence
SELECT e.seq, e.attempt, w.writer, o.own_seq + e.seq - o.seq,
       json_extract(CAST(e.facts AS TEXT), '$.adopted') IS NOT NULL
FROM event AS e JOIN writer AS w ON w.epoch = e.epoch
JOIN origin AS o ON o.seq = (SELECT max(seq) FROM origin WHERE seq <= e.seq)
WHERE e.seq IN (SELECT value FROM json_each(?));
-- name: parts
SELECT part, slices, state, limits FROM part ORDER BY part;
-- name: set_part
INSERT OR REPLACE INTO part(part, slices, state, limits) VALUES (?, ?, ?, ?);
-- name: set_place
INSERT OR REPLACE INTO place(place, task) VALUES (?, ?);

-- Grafting: a log's own projections, under the union's numbers --------------------------

-- name: graft_tasks
SELECT task + :tasks, stage, model, key, replicate, root + :tasks, grp, context,
       state, attempts, abandoned, tries, sent, since_us, started_seq + :seqs,
       reply_seq + :seqs, not_before_us, error, reason, latency_ms, cost_pico,
       updated_seq + :seqs, event_seq + :seqs
FROM task ORDER BY task;
-- name: graft_task
INSERT INTO task VALUES
  (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
-- name: graft_counts
SELECT stage, model, state, n FROM counts;
-- name: graft_minutes
SELECT stage, model, t, started, succeeded, failed, retried, tokens_in, tokens_out,
       cost_pico
FROM minute;
-- name: graft_lanes
SELECT stage, model, started, succeeded, replies, tokens_in, tokens_out, cost_pico
FROM lane;
-- name: graft_replies
SELECT stage, model, replies, truncated, refused, filtered, empty, unparsed, failed
FROM reply_tally;
-- name: graft_latencies
SELECT model, stage, bucket, n FROM latency_hist;
-- name: graft_errors
SELECT class, stage, model, n, final, last_seq + :seqs, sample_task + :tasks
FROM error_class;
-- name: graft_failures
SELECT t, class, stage, model, outcome, n, last_task + :tasks FROM failure;
-- name: graft_reasons
SELECT what, reason, n FROM reason;
-- name: graft_counters
SELECT name, n FROM counter;
-- name: graft_marks
SELECT kind, seq + :seqs FROM mark;

-- Reading -----------------------------------------------------------------------------

-- name: lost_starts
-- Attempts that one log does not know the outcome of, where another log's word counts.
SELECT e.seq, e.ver, e.facts
FROM claim AS c INDEXED BY claim_sent JOIN task AS t ON t.task = c.task
JOIN event AS e ON e.seq = c.sent_seq
WHERE c.sent_seq IS NOT NULL AND c.sent_seq IS NOT t.started_seq ORDER BY e.seq;
-- name: stretches
-- Events from `seq` on are those of a log from `own_seq` on, up to the next stretch.
SELECT o.seq, o.own_seq, lower(hex(m.log))
FROM origin AS o JOIN event AS e ON e.seq = o.seq
JOIN opening AS p ON p.epoch = e.epoch JOIN merged AS m ON m.part = p.part
ORDER BY o.seq;
-- name: has_places
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'place');
-- name: places
SELECT place, task FROM place WHERE place > ? AND task <= ? ORDER BY place LIMIT ?;
-- name: found
-- The stored answer to the task of an identity, with the request that was sent.
SELECT e.seq, e.ver, e.facts, e.enc, e.blen, b.data, s.seq, s.ver, s.facts, w.writer,
       o.own_seq + e.seq - o.seq, t.task
FROM identity AS i JOIN task AS t ON t.task = i.task
JOIN event AS e ON e.seq = t.reply_seq LEFT JOIN body AS b ON b.seq = e.seq
JOIN event AS s ON s.seq = t.started_seq
JOIN writer AS w ON w.epoch = e.epoch
JOIN origin AS o ON o.seq = (SELECT max(seq) FROM origin WHERE seq <= e.seq)
WHERE i.id = ? AND t.state = 3;
-- name: spent_by_log
-- What each log has paid for or may be billed, in pico-dollars, with the worst case of
-- calls that it knows no outcome of; reads every event.
SELECT m.log, p.slices,
       sum(CAST(round(1e12 * coalesce(e.cost, 0)) AS INTEGER)),
       sum(CAST(round(1e12 * coalesce(e.possible, 0)) AS INTEGER))
FROM (SELECT epoch, json_extract(CAST(facts AS TEXT), '$.cost_usd') AS cost,
             json_extract(CAST(facts AS TEXT), '$.possible_usd') AS possible
      FROM event WHERE kind IN (SELECT id FROM kind WHERE name IN
        ('attempt_answered', 'attempt_failed', 'attempts_abandoned'))
      UNION ALL
      SELECT epoch, 0, json_extract(CAST(facts AS TEXT), '$.worst_usd') FROM event
      WHERE seq IN (
        SELECT sent_seq FROM claim WHERE sent_seq IS NOT NULL
        UNION SELECT started_seq FROM task WHERE state = 1 AND sent = 1)) AS e
JOIN opening AS o ON o.epoch = e.epoch JOIN part AS p ON p.part = o.part
JOIN merged AS m ON m.part = o.part
GROUP BY m.log ORDER BY m.log;

-- Reading a log to carry it elsewhere (store/union/source.py, store/segments) ---------

-- name: first_writer
SELECT writer FROM writer ORDER BY epoch LIMIT 1;
-- name: writers
SELECT epoch, writer FROM writer ORDER BY epoch;
-- name: last_link
SELECT last_seq, h FROM chain ORDER BY last_seq DESC LIMIT 1;
-- name: links_after
SELECT last_seq, h FROM chain WHERE last_seq > ? AND last_seq <= ?
ORDER BY last_seq LIMIT ?;
-- name: last_blob
SELECT coalesce(max(id), 0) FROM blob;
-- name: blobs_after
SELECT id, sha256, enc, size, data
FROM (SELECT *, sum(length(data)) OVER (ORDER BY id) AS total
      FROM (SELECT * FROM blob WHERE id > ? AND id <= ? ORDER BY id LIMIT 4096))
WHERE total - length(data) < ?;
-- name: link_at
SELECT h FROM chain WHERE last_seq = ?;
-- name: next_event_us
SELECT ts_us FROM event WHERE seq > ? ORDER BY seq LIMIT 1;
-- name: rows_weight
SELECT coalesce(max(e.seq), ?1),
       coalesce(sum(length(e.facts) + coalesce(length(b.data), 0)), 0)
FROM event AS e LEFT JOIN body AS b ON b.seq = e.seq WHERE e.seq > ?1;
-- name: blobs_weight
SELECT coalesce(max(id), ?1), coalesce(sum(length(data)), 0) FROM blob WHERE id > ?1;
