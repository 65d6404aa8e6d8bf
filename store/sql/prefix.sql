-- A log as it was after one of its events: a file that holds the projections of that
-- moment, and in its reader's own connection the facts of the log behind it, attached as
-- `log`. These names come before those of either file.

CREATE TEMP VIEW event AS
  SELECT * FROM log.event WHERE seq <= (SELECT applied_seq FROM main.projection);
CREATE TEMP VIEW run AS SELECT * FROM log.run;
CREATE TEMP VIEW kind AS SELECT * FROM log.kind;
CREATE TEMP VIEW body AS SELECT * FROM log.body;
CREATE TEMP VIEW blob AS SELECT * FROM log.blob;
