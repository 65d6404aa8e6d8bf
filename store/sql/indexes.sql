-- Indexes of the projections, made after a rebuild has filled the tables: one sorted
-- pass each. Every one of them is paid for by every commit; there are no more.

-- what the scheduler asks for: the next open tasks of a stage and model
CREATE INDEX task_open ON task(stage, model, task) WHERE state < 3;
-- pages of tasks by stage and model, by state (attempts under way too) and by error
CREATE INDEX task_lane ON task(stage, model, task);
CREATE INDEX task_state ON task(state, task);
CREATE INDEX task_error ON task(error, task) WHERE error IS NOT NULL;
-- newest first
CREATE INDEX task_updated ON task(updated_seq);
-- follow-ups of a first-stage task; what a gathering stage collects
CREATE INDEX task_family ON task(root, task) WHERE root <> task;
CREATE INDEX task_group ON task(grp, task) WHERE grp IS NOT NULL;
-- the last minutes of all stages
CREATE INDEX minute_t ON minute(t);
