-- What logs lack whose projections are of an older siftlog: readers see these in their
-- place, in their own connection, until the next writer rebuilds the tables.

-- up to version 3: the sums of minutes, and what became of failed attempts
CREATE TEMP VIEW lane AS
  SELECT stage, model, sum(started) AS started, sum(succeeded) AS succeeded, (
           SELECT coalesce(sum(n), 0) FROM latency_hist AS l
           WHERE l.model = minute.model AND l.stage = minute.stage
         ) AS replies,
         sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out,
         sum(cost_pico) AS cost_pico
  FROM minute GROUP BY stage, model;

CREATE TEMP VIEW error_class AS
  SELECT class, stage, model, n, NULL AS final, last_seq, sample_task
  FROM main.error_class;

CREATE TEMP VIEW failure AS
  SELECT 0 AS t, '' AS class, '' AS stage, '' AS model, '' AS outcome, 0 AS n,
         0 AS last_task
  WHERE FALSE;
