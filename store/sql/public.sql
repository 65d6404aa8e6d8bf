-- Views for people and other programs, described in docs/log-format.md. Their columns
-- keep names and meanings in later versions; new ones are added at the end.

CREATE VIEW v_answers AS            -- a row a task: the reply that counts for it
  SELECT
    t.task, t.key, s.name AS stage, m.name AS model, t.replicate,
    CASE t.state WHEN 0 THEN 'queued' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting'
      WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' ELSE 'skipped' END AS state,
    t.attempts,
    CASE WHEN t.state = 3 THEN t.reason IS NULL END AS parsed,
    t.reason, t.error,
    strftime('%Y-%m-%dT%H:%M:%fZ', a.ts_us / 1e6, 'unixepoch') AS answered_at,
    a.facts ->> '$.form' AS form,
    a.facts ->> '$.finish_reason' AS finish_reason,
    a.facts ->> '$.latency_ms' AS latency_ms,
    a.facts ->> '$.tokens_in' AS tokens_in,
    a.facts ->> '$.tokens_out' AS tokens_out,
    t.cost_pico / 1e12 AS cost_usd,
    coalesce(a.facts ->> '$.cached', 0) AS cached,
    a.facts ->> '$.served.model' AS served_model,
    a.facts ->> '$.served.fingerprint' AS served_fingerprint,
    a.facts ->> '$.served.provider' AS served_provider,
    a.facts ->> '$.served.region' AS served_region,
    a.facts ->> '$.served.tier' AS served_tier,
    t.reply_seq AS seq
  FROM task AS t JOIN stage AS s ON s.id = t.stage JOIN model AS m ON m.id = t.model
  LEFT JOIN (SELECT seq, ts_us, CAST(facts AS TEXT) AS facts FROM event) AS a
    ON a.seq = t.reply_seq;

CREATE VIEW v_attempts AS           -- a row an attempt, in the order of their ends
  SELECT
    o.task, o.attempt, t.key, s.name AS stage, m.name AS model, t.replicate,
    o.outcome,
    strftime('%Y-%m-%dT%H:%M:%fZ', b.ts_us / 1e6, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', o.ts_us / 1e6, 'unixepoch') AS ended_at,
    o.facts ->> '$.error' AS error,
    o.facts ->> '$.message' AS message,
    o.facts ->> '$.status' AS status,
    o.facts ->> '$.finish_reason' AS finish_reason,
    o.facts ->> '$.latency_ms' AS latency_ms,
    o.facts ->> '$.tokens_in' AS tokens_in,
    o.facts ->> '$.tokens_out' AS tokens_out,
    o.facts ->> '$.tokens_cached' AS tokens_cached,
    o.facts ->> '$.tokens_reasoning' AS tokens_reasoning,
    o.facts ->> '$.cost_usd' AS cost_usd,
    o.facts ->> '$.possible_usd' AS possible_usd,
    coalesce(o.facts ->> '$.cached', 0) AS cached,
    o.facts ->> '$.served.model' AS served_model,
    o.facts ->> '$.served.fingerprint' AS served_fingerprint,
    o.facts ->> '$.served.provider' AS served_provider,
    o.facts ->> '$.served.region' AS served_region,
    o.facts ->> '$.served.tier' AS served_tier,
    o.facts ->> '$.served.request_id' AS request_id,
    CAST(b.facts AS TEXT) ->> '$.request_sha256' AS request_sha256,
    o.seq
  FROM (
    SELECT e.task, e.attempt, e.ts_us, e.prev, CAST(e.facts AS TEXT) AS facts, e.seq,
           CASE k.name WHEN 'attempt_answered' THEN 'answered' ELSE 'failed' END
             AS outcome
    FROM event AS e JOIN kind AS k ON k.id = e.kind
    WHERE k.name IN ('attempt_answered', 'attempt_failed')
    UNION ALL
    SELECT a.value ->> '$[0]', a.value ->> '$[1]', e.ts_us, NULL, '{}', e.seq,
           'unknown'
    FROM event AS e JOIN kind AS k ON k.id = e.kind,
         json_each(CAST(e.facts AS TEXT), '$.attempts') AS a
    WHERE k.name = 'attempts_abandoned'
    UNION ALL
    SELECT task, attempts, NULL, started_seq, '{}', NULL, 'in flight'
    FROM task WHERE state = 1 AND sent = 1
  ) AS o
  JOIN task AS t ON t.task = o.task
  JOIN stage AS s ON s.id = t.stage JOIN model AS m ON m.id = t.model
  LEFT JOIN event AS b ON b.seq = o.prev AND b.attempt = o.attempt
  ORDER BY o.seq IS NULL, o.seq, o.task;

CREATE VIEW v_costs AS              -- a row a stage and model
  SELECT
    l.stage, l.model,
    (SELECT coalesce(sum(n), 0) FROM counts AS c
     WHERE c.stage = l.stage AND c.model = l.model) AS tasks,
    l.succeeded AS completed,
    l.started AS attempts,
    l.tokens_in, l.tokens_out,
    l.cost_pico / 1e12 AS cost_usd
  FROM lane AS l ORDER BY l.stage, l.model;

CREATE VIEW v_scores AS             -- a row a scoring and model
  SELECT
    e.facts ->> '$.number' AS scoring,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ts_us / 1e6, 'unixepoch') AS recorded_at,
    e.facts ->> '$.job_version' AS job_version,
    e.facts ->> '$.headline' AS metric,
    r.key AS model,
    r.value AS value,
    e.facts ->> '$.seq' AS through_seq,
    e.facts ->> '$.digest' AS scorecard_sha256
  FROM (
    SELECT e.ts_us, e.seq, CAST(e.facts AS TEXT) AS facts
    FROM event AS e JOIN kind AS k ON k.id = e.kind WHERE k.name = 'scoring_recorded'
  ) AS e
  LEFT JOIN json_each(e.facts, '$.reached') AS r
  ORDER BY e.seq, r.key;
