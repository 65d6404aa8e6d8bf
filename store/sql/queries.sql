-- The statements of the store, by name (store/statements.py reads them).

-- Opening ---------------------------------------------------------------------------

-- name: application_id
PRAGMA application_id;
-- name: schema_version
SELECT schema_ver FROM run;
-- name: tables
SELECT count(*) FROM sqlite_schema;
-- name: schema
SELECT type, name, sql FROM sqlite_schema;
-- name: has_view
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ?);
-- name: has_lanes
SELECT count(*) FROM sqlite_schema WHERE name = 'lane';
-- name: has_reply_tally
SELECT count(*) FROM sqlite_schema WHERE name = 'reply_tally';
-- name: empty_reply_tally
-- stands in for the table in logs up to projection version 4
CREATE TEMP VIEW reply_tally AS
  SELECT '' AS stage, '' AS model, 0 AS replies, 0 AS truncated, 0 AS refused,
         0 AS filtered, 0 AS empty, 0 AS unparsed, 0 AS failed
  WHERE FALSE;
-- name: is_older
SELECT count(*) FROM temp.sqlite_schema WHERE name = 'failure';
-- name: set_application_id
PRAGMA application_id = 0x45564C47;
-- name: page_size
-- of new logs; a row above a quarter of a page spills, and spilled rows waste half a page
PRAGMA page_size = 16384;
-- name: journal_mode
PRAGMA journal_mode = WAL;
-- name: synchronous
PRAGMA synchronous = FULL;
-- name: synchronous_normal
PRAGMA synchronous = NORMAL;
-- name: autocheckpoint
-- 8 MiB
PRAGMA wal_autocheckpoint = 512;
-- name: journal_size_limit
PRAGMA journal_size_limit = 67108864;
-- name: writer_cache
PRAGMA cache_size = -6144;
-- name: writer_timeout
PRAGMA busy_timeout = 5000;
-- name: recursive_triggers
PRAGMA recursive_triggers = ON;
-- name: trusted_schema
PRAGMA trusted_schema = OFF;
-- name: temp_store
PRAGMA temp_store = MEMORY;
-- name: query_only
PRAGMA query_only = ON;
-- name: query_any
PRAGMA query_only = OFF;
-- name: copy_into
VACUUM INTO ?;
-- name: reader_timeout
PRAGMA busy_timeout = 2000;
-- name: reader_cache
PRAGMA cache_size = -4096;
-- name: data_version
PRAGMA data_version;
-- name: begin_reading
BEGIN DEFERRED;
-- name: checkpoint_truncate
PRAGMA wal_checkpoint(TRUNCATE);
-- name: insert_run
INSERT INTO run(id, run_id, shard, epoch, owner, schema_ver, config_sha256, created_us)
VALUES (1, ?, 0, 0, ?, ?, ?, ?);
-- name: run
SELECT run_id, epoch, config_sha256, created_us FROM run;
-- name: take_over
UPDATE run SET epoch = epoch + 1, owner = ? RETURNING epoch;
-- name: insert_writer
INSERT INTO writer(epoch, writer, opened_us) VALUES (?, ?, ?);
-- name: all_writers
SELECT epoch, writer, opened_us FROM writer ORDER BY epoch;
-- name: set_heartbeat
INSERT OR REPLACE INTO heartbeat(id, at_us, epoch, pid, host) VALUES (1, ?, ?, ?, ?);

-- Committing ------------------------------------------------------------------------

-- name: begin
BEGIN IMMEDIATE;
-- name: commit
COMMIT;
-- name: rollback
ROLLBACK;
-- name: epoch
SELECT epoch FROM run;
-- name: tail
SELECT seq, ts_us FROM event ORDER BY seq DESC LIMIT 1;
-- name: insert_event
INSERT INTO event(seq, ts_us, epoch, kind, ver, task, attempt, prev, enc, blen, facts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
-- name: insert_body
INSERT INTO main.body(seq, data) VALUES (?, ?);
-- name: blob_known
SELECT 1 FROM blob WHERE sha256 = ?;
-- name: insert_blob
INSERT INTO blob(sha256, enc, size, data) VALUES (?, ?, ?, ?);
-- name: kinds
SELECT name, id, ver FROM kind;
-- name: register_kind
INSERT INTO kind(name, ver) VALUES (?, ?)
ON CONFLICT(name) DO UPDATE SET ver = max(ver, excluded.ver) RETURNING id;
-- name: insert_link
INSERT INTO chain(last_seq, h) VALUES (?, ?);
-- name: last_links
SELECT last_seq, h FROM chain ORDER BY last_seq DESC LIMIT 2;
-- name: links_back
SELECT last_seq, h FROM chain ORDER BY last_seq DESC LIMIT ?;
-- name: latest_events
SELECT task, event_seq FROM task WHERE task IN (SELECT value FROM json_each(?));
-- name: link_at
SELECT h FROM chain WHERE last_seq = ?;
-- name: link_upto
SELECT last_seq, h FROM chain WHERE last_seq <= ? ORDER BY last_seq DESC LIMIT 1;
-- name: link_rows
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.task, e.attempt, e.prev, e.enc,
       e.blen, e.facts, b.data
FROM event AS e JOIN kind AS k ON k.id = e.kind
LEFT JOIN main.body AS b ON b.seq = e.seq
WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq;

-- Projections: reading and writing them ---------------------------------------------

-- name: projection
SELECT code_ver, applied_seq FROM projection WHERE name = 'all';
-- name: set_projection
INSERT OR REPLACE INTO projection(name, code_ver, applied_seq) VALUES ('all', ?, ?);
-- name: run_state
SELECT phase, phase_by, phase_why, phase_us, paused_by, draining_by, tasks, consumed,
       exhausted, success_us
FROM run_state;
-- name: set_run_state
INSERT OR REPLACE INTO run_state(id, phase, phase_by, phase_why, phase_us, paused_by,
  draining_by, tasks, consumed, exhausted, success_us)
VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
-- name: drafts
SELECT * FROM tasks WHERE task IN (SELECT value FROM json_each(?)) ORDER BY task;
-- name: intern_stage
INSERT OR IGNORE INTO stage(name) VALUES (?);
-- name: ids_stage
SELECT name, id FROM stage;
-- name: ids_model
SELECT name, id FROM model;
-- name: intern_model
INSERT OR IGNORE INTO model(name) VALUES (?);
-- name: insert_task
INSERT INTO task(task, stage, model, key, replicate, root, grp, context, state, reason,
  updated_seq, attempts, abandoned, tries, sent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0);
-- name: update_task
UPDATE task SET state = ?, attempts = ?, abandoned = ?, tries = ?, sent = ?,
  since_us = ?, started_seq = ?, reply_seq = ?, not_before_us = ?, error = ?,
  reason = ?, latency_ms = ?, cost_pico = ?, updated_seq = ?, event_seq = ?
WHERE task = ?;
-- name: add_counts
INSERT INTO counts(stage, model, state, n) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n;
-- name: add_minute
INSERT INTO minute(stage, model, t, started, succeeded, failed, retried, tokens_in,
  tokens_out, cost_pico)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  started = started + excluded.started, succeeded = succeeded + excluded.succeeded,
  failed = failed + excluded.failed, retried = retried + excluded.retried,
  tokens_in = tokens_in + excluded.tokens_in,
  tokens_out = tokens_out + excluded.tokens_out,
  cost_pico = cost_pico + excluded.cost_pico;
-- name: add_lane
INSERT INTO lane(stage, model, started, succeeded, replies, tokens_in, tokens_out,
  cost_pico)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  started = started + excluded.started, succeeded = succeeded + excluded.succeeded,
  replies = replies + excluded.replies,
  tokens_in = tokens_in + excluded.tokens_in,
  tokens_out = tokens_out + excluded.tokens_out,
  cost_pico = cost_pico + excluded.cost_pico;
-- name: add_replies
INSERT INTO reply_tally(stage, model, replies, truncated, refused, filtered, empty,
  unparsed, failed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  replies = replies + excluded.replies, truncated = truncated + excluded.truncated,
  refused = refused + excluded.refused, filtered = filtered + excluded.filtered,
  empty = empty + excluded.empty, unparsed = unparsed + excluded.unparsed,
  failed = failed + excluded.failed;
-- name: add_latency
INSERT INTO latency_hist(model, stage, bucket, n) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n;
-- name: set_limiter
INSERT OR REPLACE INTO limiter(model, concurrency, in_flight, rpm, tpm,
  paused_until_us, at_us, ceiling)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);
-- name: add_error
INSERT INTO error_class(class, stage, model, n, final, last_seq, sample_task)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n, final = final + excluded.final,
  last_seq = excluded.last_seq, sample_task = excluded.sample_task;
-- name: add_failures
INSERT INTO failure(t, class, stage, model, outcome, n, last_task)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n, last_task = excluded.last_task;
-- name: add_reason
INSERT INTO reason(what, reason, n)
SELECT :1, CASE
  WHEN :1 NOT LIKE 'served %' THEN :2
  WHEN EXISTS (SELECT 1 FROM reason WHERE what = :1 AND reason = :2) THEN :2
  WHEN (SELECT count(*) FROM reason WHERE what = :1) < 200 THEN :2
  ELSE substr(:2, 1, instr(:2, char(10))) END, :3
WHERE TRUE
ON CONFLICT DO UPDATE SET n = n + excluded.n;
-- name: add_counter
INSERT INTO counter(name, n) VALUES (?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n;
-- name: insert_mark
INSERT INTO mark(kind, seq) VALUES (?, ?);
-- name: set_pause
INSERT OR REPLACE INTO pause(stage, model, who) VALUES (?, ?, ?);
-- name: lift_pause
DELETE FROM pause WHERE stage = ? AND model = ?;

-- name: events_for_fold
SELECT e.seq, e.ts_us, k.name, e.ver, e.facts, e.enc, e.blen, b.data, e.epoch
FROM event AS e JOIN kind AS k ON k.id = e.kind
LEFT JOIN body AS b ON b.seq = e.seq AND k.name = 'tasks_planned'
WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?;

-- Looking back (store/prefix.py, store/moment.py) -----------------------------------

-- name: no_sync
PRAGMA synchronous = OFF;
-- name: fold_cache
PRAGMA cache_size = -65536;
-- name: attach_log
ATTACH ? AS log;
-- name: moment
SELECT seq, ts_us, epoch FROM event WHERE seq = ?;
-- name: last_sign
SELECT at_us, epoch FROM heartbeat;
-- name: opened_since
SELECT count(*) FROM writer WHERE epoch > ? AND opened_us <= ?;
-- name: worked_before
SELECT e.ts_us FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq < ? AND k.name <> 'scoring_recorded' ORDER BY e.seq DESC LIMIT 1;
-- name: worked_until
-- Scorings come whenever somebody asks for one: the run has ended before.
SELECT ts_us FROM event
WHERE kind IS NOT (SELECT id FROM kind WHERE name = 'scoring_recorded')
ORDER BY seq DESC LIMIT 1;

-- The log's reads -------------------------------------------------------------------

-- name: last_seq
SELECT coalesce(max(seq), 0) FROM event;
-- name: visible_seq
-- an older siftlog has no row of it before the first event
SELECT min(coalesce((SELECT applied_seq FROM projection WHERE name = 'all'), 0),
           coalesce((SELECT max(seq) FROM event), 0));
-- name: open_tasks
SELECT * FROM tasks WHERE task IN (
  SELECT task FROM task INDEXED BY task_open
  WHERE stage = (SELECT id FROM stage WHERE name = ?)
    AND model = (SELECT id FROM model WHERE name = ?)
    AND task > ? AND state < 3 AND state <> 1
  ORDER BY task LIMIT ?)
ORDER BY task;
-- name: final_tasks
SELECT * FROM tasks
WHERE stage_id = (SELECT id FROM stage WHERE name = ?)
  AND model_id = (SELECT id FROM model WHERE name = ?)
  AND task > ? AND state IN (3, 4)
ORDER BY task LIMIT ?;
-- name: family
SELECT * FROM tasks WHERE task = ?1
UNION ALL
SELECT * FROM (SELECT * FROM tasks WHERE root = ?1 AND root <> task ORDER BY task);
-- name: group
SELECT * FROM tasks
WHERE grp = ?4 AND grp IS NOT NULL
  AND stage_id = (SELECT id FROM stage WHERE name = ?1)
  AND model_id = (SELECT id FROM model WHERE name = ?2) AND replicate = ?3
ORDER BY task;
-- name: group_is_open
SELECT 1 FROM task INDEXED BY task_group
WHERE grp = ?4 AND grp IS NOT NULL
  AND stage = (SELECT id FROM stage WHERE name = ?1)
  AND model = (SELECT id FROM model WHERE name = ?2) AND replicate = ?3 AND state < 3
ORDER BY task DESC LIMIT 1;
-- name: unread_answers
SELECT * FROM tasks
WHERE state = 1 AND sent = 0 AND reply_seq IS NOT NULL AND task > ?
ORDER BY task LIMIT ?;
-- name: sent_attempts
SELECT task, attempts FROM task
WHERE state = 1 AND sent = 1 ORDER BY task;
-- name: sent_starts
SELECT e.seq, e.ver, e.facts
FROM task AS t JOIN event AS e ON e.seq = t.started_seq
WHERE t.state = 1 AND t.sent = 1 ORDER BY t.task;
-- name: reply
SELECT e.seq, e.ver, e.facts, e.enc, e.blen, b.data
FROM task AS t JOIN event AS e ON e.seq = t.reply_seq
LEFT JOIN body AS b ON b.seq = e.seq WHERE t.task = ?;
-- name: started
SELECT e.seq, e.ver, e.facts
FROM task AS t JOIN event AS e ON e.seq = t.started_seq
WHERE t.task = ?;
-- name: events
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq > ? ORDER BY e.seq LIMIT ?;
-- name: events_of_kinds
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq > ? AND e.kind IN (
  SELECT id FROM kind WHERE name IN (SELECT value FROM json_each(?)))
ORDER BY e.seq LIMIT ?;
-- name: event_times
SELECT seq, ts_us FROM event WHERE seq IN (SELECT value FROM json_each(?));

-- name: payload
SELECT e.enc, e.blen, b.data FROM event AS e LEFT JOIN body AS b ON b.seq = e.seq
WHERE e.seq = ?;
-- name: first_facts
SELECT facts FROM event WHERE seq = 1;
-- name: drop_body_view
DROP VIEW IF EXISTS temp.body;
-- name: adopted_answers
SELECT e.seq, e.facts FROM event AS e
WHERE e.kind = (SELECT id FROM kind WHERE name = 'attempt_answered')
  AND e.facts ->> '$.forked' IS NOT NULL AND e.seq > ? ORDER BY e.seq LIMIT ?;
-- name: tasks_after
SELECT * FROM tasks WHERE task > ? ORDER BY task LIMIT ?;
-- name: part
SELECT enc, size, data FROM blob WHERE sha256 = ?;
-- name: has_part
SELECT 1 FROM blob WHERE sha256 = ?;

-- Filter terms (store/query.py): conditions over the view `tasks` ---------------------

-- name: where_all
TRUE
-- name: where_not
NOT coalesce(({}), 0)
-- name: where_state
state = ?
-- name: where_open
state < 3
-- name: where_done
state IN (3, 4)
-- name: where_final
state >= 3
-- name: where_held
state = 2 AND not_before_us IS NULL
-- name: where_stage
stage_id = (SELECT id FROM stage WHERE name = ?)
-- name: where_stage_any
TRUE
-- name: where_model
model_id = (SELECT id FROM model WHERE name = ?)
-- name: where_of_item
-- Tasks under an item's name, and what descends from them: an item is a key, the part
-- of keys before the first separator, or a group.
root IN (
  SELECT task FROM tasks WHERE root = task
  AND (? IN (key, grp) OR substr(key, 1, ?) IN (SELECT value FROM json_each(?))))
OR ? IN (key, grp) OR substr(key, 1, ?) IN (SELECT value FROM json_each(?))
-- name: where_model_any
TRUE
-- name: where_item
key LIKE ? ESCAPE '\'
-- name: where_any_attempt
-- Tasks that ended so, or have an event of that kind in their course. Most have been
-- completed at their first attempt: their events are not read.
({}) OR (attempts > 1 OR state <> 3) AND EXISTS (
  WITH RECURSIVE own(seq) AS (
    SELECT event_seq WHERE event_seq IS NOT NULL
    UNION ALL
    SELECT e.prev FROM own JOIN event AS e ON e.seq = own.seq WHERE e.prev IS NOT NULL
  )
  SELECT 1 FROM own JOIN event AS e ON e.seq = own.seq WHERE {})
-- name: where_known_err
-- An error that no attempt has had is looked for in no course.
EXISTS (SELECT 1 FROM error_class WHERE class = ?) AND ({})
-- name: where_ended_err
error = ?
-- name: where_ended_err_any
error IS NOT NULL
-- name: where_parse
state = 3 AND reason = ?
-- name: where_parse_any
state = 3 AND reason IS NOT NULL
-- name: where_ended_reason
? IN (error, reason)
-- name: where_ended_reason_any
error IS NOT NULL OR reason IS NOT NULL
-- name: where_rejected
-- A reply came, and could not be used: few of many events, so they are read in one go.
state = 3 AND reason IS NOT NULL OR task IN (
  SELECT e.task FROM event AS e
  WHERE e.kind = (SELECT id FROM kind WHERE name = 'attempt_answered')
    AND json_extract(CAST(e.facts AS TEXT), '$.reask') IS NOT NULL
  OR e.kind = (SELECT id FROM kind WHERE name = 'attempt_failed')
    AND json_extract(CAST(e.facts AS TEXT), '$.status') BETWEEN 200 AND 299)
-- name: where_latency_above
latency_ms > ?
-- name: where_latency_below
latency_ms < ?
-- name: where_cost_above
cost_pico > ?
-- name: where_cost_below
cost_pico < ?
-- name: where_attempts
attempts = ?
-- name: where_attempts_above
attempts > ?
-- name: where_attempts_below
attempts < ?
-- name: where_task
task = ?
-- name: where_outcome
task IN (SELECT value FROM json_each(outcome_tasks(?)))
-- name: where_text
key LIKE ? ESCAPE '\' OR task = ?

-- Filter terms of events (store/event_query.py): conditions over `event AS e` ----------
-- Facts are looked into as text: SQLite takes a BLOB for JSON of its own kind.

-- name: where_event_kind
e.kind IN (
  SELECT id FROM kind WHERE name IN (SELECT value FROM json_each(?)))
-- name: where_event_task
e.task = ?
-- name: where_event_stage
EXISTS (SELECT 1 FROM task AS t WHERE t.task = e.task
  AND t.stage = (SELECT id FROM stage WHERE name = ?))
-- name: where_event_model
EXISTS (SELECT 1 FROM task AS t WHERE t.task = e.task
  AND t.model = (SELECT id FROM model WHERE name = ?))
OR e.kind = (SELECT id FROM kind WHERE name = 'limit_observed')
  AND json_extract(CAST(e.facts AS TEXT), '$.model') = ?
-- name: where_event_item
EXISTS (SELECT 1 FROM task AS t WHERE t.task = e.task AND t.key LIKE ? ESCAPE '\')
-- name: where_event_err
e.kind IN (SELECT id FROM kind WHERE name IN ('attempt_failed', 'task_failed'))
AND json_extract(CAST(e.facts AS TEXT), '$.error') = ?
-- name: where_event_err_any
e.kind IN (SELECT id FROM kind WHERE name IN ('attempt_failed', 'task_failed'))
-- name: where_event_reason
e.kind IN (SELECT id FROM kind WHERE name IN ('attempt_failed', 'attempt_answered',
  'task_failed', 'task_completed', 'task_skipped'))
AND ? IN (json_extract(CAST(e.facts AS TEXT), '$.error'),
  json_extract(CAST(e.facts AS TEXT), '$.reask'),
  json_extract(CAST(e.facts AS TEXT), '$.unparsed'),
  json_extract(CAST(e.facts AS TEXT), '$.reason'))
-- name: where_event_reason_any
e.kind IN (SELECT id FROM kind WHERE name IN ('attempt_failed', 'attempt_answered',
  'task_failed', 'task_completed', 'task_skipped'))
AND coalesce(json_extract(CAST(e.facts AS TEXT), '$.error'),
  json_extract(CAST(e.facts AS TEXT), '$.reask'),
  json_extract(CAST(e.facts AS TEXT), '$.unparsed'),
  json_extract(CAST(e.facts AS TEXT), '$.reason')) IS NOT NULL
-- name: where_event_text
-- The names of the facts are no text of theirs: the values decide, and are looked into
-- only where the whole would do.
e.task = ?
OR e.kind IN (SELECT id FROM kind WHERE name LIKE ? ESCAPE '\')
OR CAST(e.facts AS TEXT) LIKE ? ESCAPE '\' AND EXISTS (
  SELECT 1 FROM json_tree(CAST(e.facts AS TEXT)) WHERE atom LIKE ? ESCAPE '\')

-- Views: what people and scorers look at (store/views.py) -----------------------------

-- name: created_us
SELECT created_us FROM run;
-- name: tasks_page
SELECT * FROM tasks WHERE task > ? AND {} ORDER BY task LIMIT ?;
-- name: tasks_by_root
SELECT * FROM tasks WHERE {} ORDER BY root, task LIMIT ?;
-- name: items_like
SELECT DISTINCT key FROM tasks WHERE key LIKE ? ESCAPE '\' ORDER BY key LIMIT ?;
-- name: numbers
SELECT task, 0 FROM tasks WHERE task > ? AND {} ORDER BY task LIMIT ?;

-- name: numbers_newest
SELECT task, updated_seq FROM tasks WHERE (updated_seq, task) < (?, ?) AND {}
ORDER BY updated_seq DESC, task DESC LIMIT ?;

-- name: numbers_slowest
SELECT task, 0 FROM tasks WHERE latency_ms IS NOT NULL AND {}
ORDER BY latency_ms DESC, task LIMIT ?;

-- name: numbers_dearest
SELECT task, 0 FROM tasks WHERE cost_pico IS NOT NULL AND {}
ORDER BY cost_pico DESC, task LIMIT ?;

-- name: numbers_most_tried
SELECT task, 0 FROM tasks WHERE attempts > 0 AND {}
ORDER BY attempts DESC, task LIMIT ?;

-- name: numbers_changed
SELECT task FROM tasks WHERE updated_seq > ? AND {} ORDER BY updated_seq, task LIMIT ?;

-- name: tasks_by_lane
SELECT stage, model, count(*) FROM tasks WHERE {} GROUP BY stage, model
ORDER BY stage, model;
-- name: lane_costs
-- An answer of the response cache cost nothing and left no latency.
SELECT stage, model, cost_pico, min(succeeded, replies) FROM lane
WHERE min(succeeded, replies) > 0 ORDER BY stage, model;
-- name: run_header
SELECT run_id, created_us FROM run;
-- name: first_event
SELECT k.name, e.ver, e.facts, e.ts_us FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq = 1;
-- name: heartbeat
SELECT at_us, pid, host FROM heartbeat;
-- name: counts
SELECT stage, model, state, n FROM counts ORDER BY stage, model, state;
-- name: counters
SELECT name, n FROM counter;
-- name: usage
SELECT stage, model, replies, tokens_in, tokens_out FROM lane ORDER BY stage, model;
-- name: queue_costs
SELECT stage, model, cost_pico, succeeded FROM lane WHERE succeeded > 0;
-- name: reply_shares
SELECT model, sum(replies), sum(truncated), sum(refused), sum(filtered), sum(empty),
       sum(unparsed), sum(failed)
FROM reply_tally GROUP BY model ORDER BY model;
-- name: minutes
SELECT t, stage, model, started, succeeded, failed, retried, tokens_in, tokens_out,
       cost_pico
FROM minute WHERE t >= ? ORDER BY t, stage, model;
-- name: completed_by_minute
SELECT t, sum(succeeded) FROM minute GROUP BY t ORDER BY t;
-- name: minute_buckets
SELECT t / :width AS number, sum(started), sum(succeeded), sum(failed), sum(retried),
       sum(tokens_in), sum(tokens_out), sum(cost_pico)
FROM minute WHERE t >= :since AND t < :until AND (:model IS NULL OR model = :model)
GROUP BY number ORDER BY number;
-- name: sent_before
SELECT coalesce(sum(started - succeeded - failed - retried), 0)
FROM minute WHERE t < :until AND (:model IS NULL OR model = :model);
-- name: running_now
SELECT coalesce(sum(n), 0) FROM counts
WHERE state = 1 AND (:model IS NULL OR model = :model);
-- name: limits_observed
SELECT e.seq, e.ts_us, e.epoch, 'limit_observed', e.ver, e.facts, e.blen
FROM event AS e
WHERE e.seq > ? AND e.seq <= ?
  AND e.kind = (SELECT id FROM kind WHERE name = 'limit_observed')
ORDER BY e.seq;
-- name: model_latencies
SELECT model, bucket, sum(n) FROM latency_hist GROUP BY model, bucket
ORDER BY model, bucket;
-- name: call_times
-- sums over buckets: of their numbers, and of the squares
SELECT stage, model, sum(n), sum(n * bucket), sum(n * bucket * bucket)
FROM latency_hist GROUP BY stage, model;
-- name: first_tasks
-- the first task of each stage and model, and the item that it is about
SELECT s.name, t.task, t.root FROM stage AS s, model AS m JOIN task AS t ON t.task = (
  SELECT min(task) FROM task WHERE stage = s.id AND model = m.id);
-- name: ended_items
-- how many tasks of each item have ended, by model, in the order of the plan
SELECT m.name, sum(t.state > 2)
FROM stage AS s JOIN model AS m JOIN task AS t ON t.stage = s.id AND t.model = m.id
WHERE s.name = ? AND t.state <> 5 GROUP BY m.id, t.key ORDER BY m.id, min(t.task);
-- name: outcomes
SELECT e.seq, e.ts_us, m.name, k.name, e.ver, e.facts
FROM event AS e JOIN kind AS k ON k.id = e.kind
JOIN task AS t ON t.task = e.task JOIN model AS m ON m.id = t.model
WHERE e.seq > ? AND e.seq <= ? AND k.name IN ('attempt_answered', 'attempt_failed')
ORDER BY e.seq;
-- name: completions
SELECT e.ts_us / 1000000 AS second, count(*), coalesce(sum(t.cost_pico), 0)
FROM task AS t JOIN event AS e ON e.seq = t.updated_seq
-- "+": the index by state would find all completed tasks of the run
WHERE t.updated_seq > ? AND t.updated_seq <= ? AND +t.state = 3
GROUP BY second ORDER BY second;
-- name: next_retries
SELECT stage, model, min(not_before_us) FROM tasks
WHERE state = 2 AND not_before_us IS NOT NULL GROUP BY stage, model;
-- name: oldest_in_flight
SELECT task, stage, model, key, attempts, since_us, error FROM tasks
WHERE state = 1 AND sent = 1 ORDER BY since_us, task LIMIT ?;
-- name: model_calls
SELECT model, sum(started) FROM lane GROUP BY model ORDER BY model;
-- name: model_costs
SELECT model, sum(cost_pico) FROM lane GROUP BY model ORDER BY model;
-- name: error_classes
SELECT class, stage, model, n, final, last_seq, sample_task FROM error_class
ORDER BY class, stage, model;
-- name: failures
SELECT t, class, stage, model, outcome, n, last_task FROM failure WHERE t >= ?
ORDER BY t, class, stage, model, outcome;
-- name: reasons
SELECT what, reason, n FROM reason WHERE n > 0 ORDER BY what, n DESC, reason;
-- name: latencies
SELECT bucket, sum(n) FROM latency_hist GROUP BY bucket ORDER BY bucket;
-- name: marked
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM mark AS m JOIN event AS e ON e.seq = m.seq JOIN kind AS k ON k.id = e.kind
WHERE m.kind = ? AND m.seq > ? ORDER BY m.seq LIMIT ?;
-- name: turns
SELECT e.seq, e.ts_us, m.kind FROM mark AS m JOIN event AS e ON e.seq = m.seq
WHERE m.kind IN ('run_started', 'run_resumed', 'run_finished', 'run_drained', 'run_cancelled')
  AND (:through IS NULL OR m.seq <= :through)
ORDER BY e.seq;
-- name: session_last
SELECT ts_us FROM event
WHERE seq >= :start AND seq <= coalesce(:through, (SELECT max(seq) FROM event))
  AND epoch = (SELECT epoch FROM event WHERE seq = :start)
ORDER BY seq DESC LIMIT 1;
-- name: last_marked
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM mark AS m JOIN event AS e ON e.seq = m.seq JOIN kind AS k ON k.id = e.kind
WHERE m.kind = ? ORDER BY m.seq DESC LIMIT 1;
-- name: planned_upto
SELECT e.seq, k.name, e.ver, e.facts
FROM mark AS m JOIN event AS e ON e.seq = m.seq JOIN kind AS k ON k.id = e.kind
WHERE m.kind = 'tasks_planned' AND m.seq <= ? ORDER BY m.seq DESC LIMIT 1;
-- name: last_work
SELECT ts_us FROM event
WHERE seq <= coalesce(:through, (SELECT max(seq) FROM event)) AND task IS NOT NULL
ORDER BY seq DESC LIMIT 1;
-- name: events_back
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq >= ? AND e.seq <= ? AND {} ORDER BY e.seq DESC LIMIT ?;
-- name: events_on
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq >= ? AND e.seq <= ? AND {} ORDER BY e.seq LIMIT ?;
-- name: events_named
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM event AS e JOIN kind AS k ON k.id = e.kind
WHERE e.seq IN (SELECT value FROM json_each(?)) AND {} ORDER BY e.seq;
-- name: marks_back
SELECT seq FROM mark WHERE kind = ? AND seq >= ? AND seq <= ? ORDER BY seq DESC LIMIT ?;
-- name: marks_on
SELECT seq FROM mark WHERE kind = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ?;
-- name: task_events
WITH RECURSIVE own(seq) AS (
  SELECT event_seq FROM task WHERE task = ? AND event_seq IS NOT NULL
  UNION ALL
  SELECT e.prev FROM own JOIN event AS e ON e.seq = own.seq WHERE e.prev IS NOT NULL
)
SELECT e.seq, e.ts_us, e.epoch, k.name, e.ver, e.facts, e.blen
FROM own JOIN event AS e ON e.seq = own.seq JOIN kind AS k ON k.id = e.kind
ORDER BY e.seq;
-- name: roots
SELECT * FROM tasks WHERE task > ? AND root = task AND task <= ? ORDER BY task LIMIT ?;
-- name: descendants
SELECT * FROM tasks
WHERE root <> task AND root IN (SELECT value FROM json_each(?)) AND task <= ?
ORDER BY root, task;
-- name: outcome_roots
SELECT task, stage, key, model, replicate, root, context, state, reply_seq, error,
       reason, cost_pico, updated_seq
FROM task WHERE task > ? AND root = task AND task <= ? ORDER BY task LIMIT ?;
-- name: outcome_descendants
SELECT task, stage, key, model, replicate, root, context, state, reply_seq, error,
       reason, cost_pico, updated_seq
FROM task
WHERE root <> task AND root IN (SELECT value FROM json_each(?)) AND task <= ?
ORDER BY root, task;
-- name: outcomes_numbered
SELECT task, stage, key, model, replicate, root, context, state, reply_seq, error,
       reason, cost_pico, updated_seq
FROM task WHERE task IN (SELECT value FROM json_each(?));
-- name: has_descendants
SELECT 1 FROM task INDEXED BY task_family WHERE root <> task LIMIT 1;
-- name: roots_of_model
SELECT * FROM tasks
WHERE model_id = (SELECT id FROM model WHERE name = ?) AND task > ? AND root = task
ORDER BY task LIMIT ?;
-- name: descendants_of
SELECT * FROM tasks
WHERE root <> task AND root IN (SELECT value FROM json_each(?)) ORDER BY root, task;
-- name: attempts_of
WITH RECURSIVE own(task, seq) AS (
  SELECT task, event_seq FROM task
  WHERE task IN (SELECT value FROM json_each(?)) AND event_seq IS NOT NULL
  UNION ALL
  SELECT own.task, e.prev FROM own JOIN event AS e ON e.seq = own.seq
  WHERE e.prev IS NOT NULL
)
SELECT own.task, e.ts_us, k.name, e.ver, e.facts
FROM own JOIN event AS e ON e.seq = own.seq JOIN kind AS k ON k.id = e.kind
ORDER BY own.task, e.seq;
-- name: replies
SELECT e.seq, e.ver, e.facts, e.enc, e.blen, b.data
FROM event AS e LEFT JOIN body AS b ON b.seq = e.seq
WHERE e.seq IN (SELECT value FROM json_each(?));

-- Verifying (store/verify.py) ---------------------------------------------------------

-- name: quick_check
PRAGMA quick_check(1);
-- name: links
SELECT last_seq, h FROM chain WHERE last_seq > ? ORDER BY last_seq LIMIT ?;
-- name: unchained
SELECT min(seq) FROM event WHERE seq > (SELECT coalesce(max(last_seq), 0) FROM chain);
-- name: blobs_page
SELECT id, sha256, enc, size, data FROM blob WHERE id > ? ORDER BY id LIMIT ?;
-- name: bodies_page
SELECT e.seq, e.enc, e.blen, b.data FROM main.body AS b JOIN event AS e USING (seq)
WHERE b.seq > ? ORDER BY b.seq LIMIT ?;
-- name: blob_bodies
SELECT id, enc, size, data FROM blob WHERE id > ? ORDER BY id LIMIT ?;
-- name: rows_task
SELECT * FROM tasks ORDER BY task;
-- name: rows_run_state
SELECT * FROM run_state;
-- name: rows_pause
SELECT * FROM pause ORDER BY stage, model;
-- a count of 0 is as good as none: a state that tasks only passed through may have one
-- name: rows_counts
SELECT * FROM counts WHERE n <> 0 ORDER BY stage, model, state;
-- name: rows_minute
SELECT * FROM minute ORDER BY stage, model, t;
-- name: rows_lane
SELECT * FROM lane ORDER BY stage, model;
-- name: rows_reply_tally
SELECT * FROM reply_tally ORDER BY stage, model;
-- name: rows_latency_hist
SELECT * FROM latency_hist ORDER BY model, stage, bucket;
-- name: rows_limiter
SELECT * FROM limiter ORDER BY model;
-- name: rows_error_class
SELECT * FROM error_class ORDER BY class, stage, model;
-- name: rows_failure
SELECT * FROM failure ORDER BY t, class, stage, model, outcome;
-- name: rows_reason
SELECT * FROM reason WHERE n <> 0 ORDER BY what, reason;
-- name: rows_counter
SELECT * FROM counter WHERE n <> 0 ORDER BY name;
-- name: rows_mark
SELECT * FROM mark ORDER BY kind, seq;
