-- What a log consists of: facts, their bodies, and names. Nothing here is ever
-- changed or deleted, except the run's epoch; the triggers stop accidents.

CREATE TABLE run(
  id INTEGER PRIMARY KEY CHECK(id = 1),
  run_id TEXT NOT NULL,
  shard INTEGER NOT NULL,
  epoch INTEGER NOT NULL,           -- bumped by every opening for writing: the fence
  owner TEXT NOT NULL,              -- who opened it last, for messages
  schema_ver INTEGER NOT NULL,
  config_sha256 BLOB NOT NULL,
  created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE writer(                -- who wrote which epoch; (writer, seq) names an event
  epoch INTEGER PRIMARY KEY,
  writer BLOB NOT NULL UNIQUE,
  opened_us INTEGER NOT NULL
) STRICT;

-- Names are data, ids are per file; `ver` is the highest version written here.
CREATE TABLE kind(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  ver INTEGER NOT NULL
) STRICT;
CREATE TABLE stage(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE model(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE event(
  seq INTEGER PRIMARY KEY,          -- dense, given by the writer; commit order
  ts_us INTEGER NOT NULL,           -- strictly increasing in this file
  epoch INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  ver INTEGER NOT NULL,
  task INTEGER,
  attempt INTEGER,
  prev INTEGER,                     -- the task's event before this one: a list, no index
  enc INTEGER NOT NULL,             -- of the body: 0 none, 1 as received, 2 zstd
  blen INTEGER NOT NULL,            -- length of the body before compression
  facts BLOB NOT NULL               -- the event's fields as JSON; all that folds read
) STRICT;

CREATE TABLE body(seq INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;

CREATE TABLE blob(
  id INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  enc INTEGER NOT NULL,
  size INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE chain(last_seq INTEGER PRIMARY KEY, h BLOB NOT NULL) STRICT;

-- A plain row, outside of events and rebuilds: "the process is alive".
CREATE TABLE heartbeat(
  id INTEGER PRIMARY KEY CHECK(id = 1),
  at_us INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL
) STRICT;

CREATE TABLE projection(
  name TEXT PRIMARY KEY,
  code_ver INTEGER NOT NULL,
  applied_seq INTEGER NOT NULL
) STRICT;

CREATE TRIGGER event_no_update BEFORE UPDATE ON event
  BEGIN SELECT RAISE(ABORT, 'event is append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
  BEGIN SELECT RAISE(ABORT, 'event is append-only'); END;
CREATE TRIGGER event_dense BEFORE INSERT ON event
  WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM event)
  BEGIN SELECT RAISE(ABORT, 'gap in seq'); END;
CREATE TRIGGER body_no_update BEFORE UPDATE ON body
  BEGIN SELECT RAISE(ABORT, 'body is append-only'); END;
CREATE TRIGGER body_no_delete BEFORE DELETE ON body
  BEGIN SELECT RAISE(ABORT, 'body is append-only'); END;
CREATE TRIGGER blob_no_update BEFORE UPDATE ON blob
  BEGIN SELECT RAISE(ABORT, 'blob is append-only'); END;
CREATE TRIGGER blob_no_delete BEFORE DELETE ON blob
  BEGIN SELECT RAISE(ABORT, 'blob is append-only'); END;
CREATE TRIGGER chain_no_update BEFORE UPDATE ON chain
  BEGIN SELECT RAISE(ABORT, 'chain is append-only'); END;
CREATE TRIGGER chain_no_delete BEFORE DELETE ON chain
  BEGIN SELECT RAISE(ABORT, 'chain is append-only'); END;
