-- Derived tables: dropped and rebuilt from the events at any time. Money is counted
-- in whole pico-dollars, so that sums come out the same however they are grouped.

DROP TABLE IF EXISTS task;
DROP VIEW IF EXISTS tasks;
DROP VIEW IF EXISTS in_flight;
DROP TABLE IF EXISTS run_state;
DROP TABLE IF EXISTS pause;
DROP TABLE IF EXISTS counts;
DROP TABLE IF EXISTS minute;
DROP TABLE IF EXISTS lane;
DROP TABLE IF EXISTS reply_tally;
DROP TABLE IF EXISTS latency_hist;
DROP TABLE IF EXISTS limiter;
DROP TABLE IF EXISTS error_class;
DROP TABLE IF EXISTS failure;
DROP TABLE IF EXISTS reason;
DROP TABLE IF EXISTS counter;
DROP TABLE IF EXISTS mark;

CREATE TABLE task(
  task INTEGER PRIMARY KEY,
  stage INTEGER NOT NULL,
  model INTEGER NOT NULL,
  key TEXT NOT NULL,
  replicate INTEGER NOT NULL,
  root INTEGER NOT NULL,
  grp TEXT,
  context TEXT,
  state INTEGER NOT NULL,           -- store.task.TaskState
  attempts INTEGER NOT NULL,
  abandoned INTEGER NOT NULL,
  tries INTEGER NOT NULL,           -- attempts that count against the retry bound
  sent INTEGER NOT NULL,            -- 1: an attempt is out whose outcome is not recorded
  since_us INTEGER,                 -- when its present attempt started
  started_seq INTEGER,              -- event of the latest started attempt
  reply_seq INTEGER,
  not_before_us INTEGER,
  error TEXT,
  reason TEXT,
  latency_ms REAL,
  cost_pico INTEGER,
  updated_seq INTEGER NOT NULL,
  event_seq INTEGER                 -- the latest event of its own; see event.prev
) STRICT;

-- Tasks with the names of their stage and model; columns as in store.task.TaskDraft.
CREATE VIEW tasks AS
  SELECT task, (SELECT name FROM stage WHERE id = t.stage) AS stage,
         (SELECT name FROM model WHERE id = t.model) AS model,
         key, replicate, root, grp, context, state, attempts, abandoned, tries, sent,
         since_us, started_seq, reply_seq, not_before_us, error, reason, latency_ms,
         cost_pico, updated_seq, event_seq, t.stage AS stage_id, t.model AS model_id
  FROM task AS t;

-- Attempts under way, and tasks waiting for their next one.
CREATE VIEW in_flight AS
  SELECT task, stage, model, attempts AS attempt, since_us, state, sent,
         not_before_us AS retry_at_us
  FROM task WHERE state IN (1, 2);

CREATE TABLE run_state(
  id INTEGER PRIMARY KEY CHECK(id = 1),
  phase TEXT NOT NULL,              -- kind of the last event that began or ended work
  phase_by TEXT,
  phase_why TEXT,
  phase_us INTEGER NOT NULL,
  paused_by TEXT,                   -- who paused the whole run; NULL: not paused
  draining_by TEXT,                 -- who asked to drain; NULL: nobody
  tasks INTEGER NOT NULL,           -- highest task number
  consumed INTEGER NOT NULL,        -- first-stage specs taken from the plan
  exhausted INTEGER NOT NULL,
  success_us INTEGER                -- when a task was last completed
) STRICT;

CREATE TABLE pause(                 -- stages and models held back; '' stands for every
  stage TEXT NOT NULL, model TEXT NOT NULL, who TEXT NOT NULL,
  PRIMARY KEY(stage, model)
) WITHOUT ROWID, STRICT;

CREATE TABLE counts(
  stage TEXT NOT NULL, model TEXT NOT NULL, state INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(stage, model, state)
) WITHOUT ROWID, STRICT;

CREATE TABLE minute(
  stage TEXT NOT NULL, model TEXT NOT NULL,
  t INTEGER NOT NULL,               -- minutes since 1970
  started INTEGER NOT NULL,         -- attempts
  succeeded INTEGER NOT NULL,       -- tasks completed
  failed INTEGER NOT NULL,          -- tasks failed
  retried INTEGER NOT NULL,         -- attempts that led to another one
  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost_pico INTEGER NOT NULL,
  PRIMARY KEY(stage, model, t)
) WITHOUT ROWID, STRICT;

CREATE TABLE lane(                  -- the minutes in sum: no look adds up a week of them
  stage TEXT NOT NULL, model TEXT NOT NULL,
  started INTEGER NOT NULL, succeeded INTEGER NOT NULL,
  replies INTEGER NOT NULL,         -- answers whose latency is known
  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost_pico INTEGER NOT NULL,
  PRIMARY KEY(stage, model)
) WITHOUT ROWID, STRICT;

CREATE TABLE reply_tally(           -- what was wrong with replies; see store.sums
  stage TEXT NOT NULL, model TEXT NOT NULL,
  replies INTEGER NOT NULL, truncated INTEGER NOT NULL, refused INTEGER NOT NULL,
  filtered INTEGER NOT NULL, empty INTEGER NOT NULL, unparsed INTEGER NOT NULL,
  failed INTEGER NOT NULL,          -- tasks without a reply
  PRIMARY KEY(stage, model)
) WITHOUT ROWID, STRICT;

CREATE TABLE latency_hist(
  model TEXT NOT NULL, stage TEXT NOT NULL,
  bucket INTEGER NOT NULL,          -- latencies from 1.02^bucket ms up to the next
  n INTEGER NOT NULL,
  PRIMARY KEY(model, stage, bucket)
) WITHOUT ROWID, STRICT;

CREATE TABLE limiter(
  model TEXT PRIMARY KEY, concurrency INTEGER NOT NULL, in_flight INTEGER NOT NULL,
  rpm REAL, tpm REAL, paused_until_us INTEGER, at_us INTEGER NOT NULL,
  ceiling INTEGER                   -- calls at a time that the user allows
) WITHOUT ROWID, STRICT;

CREATE TABLE error_class(           -- failed attempts by class
  class TEXT NOT NULL, stage TEXT NOT NULL, model TEXT NOT NULL, n INTEGER NOT NULL,
  final INTEGER NOT NULL,           -- of them, without a further attempt
  last_seq INTEGER NOT NULL, sample_task INTEGER NOT NULL,
  PRIMARY KEY(class, stage, model)
) WITHOUT ROWID, STRICT;

CREATE TABLE failure(               -- what went wrong in a minute
  t INTEGER NOT NULL,               -- minutes since 1970
  class TEXT NOT NULL,              -- of the error, or the reason of a refused reply
  stage TEXT NOT NULL, model TEXT NOT NULL,
  outcome TEXT NOT NULL,            -- store.fold.Outcome
  n INTEGER NOT NULL, last_task INTEGER NOT NULL,
  PRIMARY KEY(t, class, stage, model, outcome)
) WITHOUT ROWID, STRICT;

-- Counts by word: tasks by 'skip' or 'parse' reason, answers by 're-ask' reason and by
-- what served them ('served model' and so on; see store.served). Of what served them
-- the first 200 names are kept, the rest is counted under the model's empty one.
CREATE TABLE reason(
  what TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(what, reason)
) WITHOUT ROWID, STRICT;

CREATE TABLE counter(name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID, STRICT;

-- Where the events stand that are not about one task: a sparse index by kind.
CREATE TABLE mark(
  kind TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(kind, seq)
) WITHOUT ROWID, STRICT;
