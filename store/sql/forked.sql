-- The bodies of a fork, those of its parent run included. An answer that a fork adopted
-- has no row in its own table; forked_body() finds it by the event's fields.

CREATE TEMP VIEW body AS
  SELECT e.seq AS seq,
         coalesce((SELECT b.data FROM main.body AS b WHERE b.seq = e.seq),
                  CASE WHEN e.enc <> 0 THEN forked_body(e.facts) END) AS data
  FROM event AS e;
