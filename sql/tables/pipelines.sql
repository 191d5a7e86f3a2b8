-- Pipelines as the configuration has them, one row per wording: runs end by the wording that they began with. No
-- variables; search_path = the schema.

CREATE TABLE pipeline (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    active boolean NOT NULL, -- starts runs
    org_field text COLLATE "C" NOT NULL,
    subject_field text COLLATE "C" NOT NULL,
    once_fields text[] COLLATE "C", -- NULL: every transition starts a run
    first_step integer NOT NULL,
    first_delay_ms bigint NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    push text COLLATE "C", -- once_per counts over all pipelines of this push; NULL: over this pipeline
    stages jsonb, -- {NAME: [step, delay in ms]}: where runs that enter there begin
    lookup_sql text, -- the statement that asks for rows before calls, with the conditions of steps; NULL: none
    lookup_as text COLLATE "C", -- the member of the body that has the row
    UNIQUE (name, hash)
);

-- Waits and moves without a condition have become delays and targets of the step before; the steps that are left have
-- an effect or a decision. A row of op 'end' ends the run.
CREATE TABLE pipeline_step (
    pipeline_id integer REFERENCES pipeline,
    step integer,
    stage text COLLATE "C" NOT NULL,
    op text COLLATE "C" NOT NULL CHECK (op IN ('webhook', 'produce', 'await', 'wait', 'move', 'end', 'split')),
    target text COLLATE "C", -- endpoint, topic or push
    key_field text COLLATE "C", -- of the record that is produced
    if_codes smallint[] NOT NULL, -- all of them, and
    unless_codes smallint[] NOT NULL, -- none of these (10000: suppressed): else the step is passed over
    awaits smallint,
    within_ms bigint NOT NULL,
    next_step integer NOT NULL, next_delay_ms bigint NOT NULL,
    else_step integer NOT NULL, else_delay_ms bigint NOT NULL, -- await: not reached in time; others: passed over
    exits jsonb, -- split: {stage: [step, delay in ms]}
    capped boolean NOT NULL DEFAULT true, -- its calls count against the caps of the subject
    from_second integer, till_second integer, -- of its window, see action_turns(); NULL: it has none
    days integer[],
    smooth_ms bigint, -- over which subjects are spread that waited for the opening
    hour_field text COLLATE "C", -- whose hour a subject's window begins at
    PRIMARY KEY (pipeline_id, step)
);
CREATE INDEX pipeline_step_window ON pipeline_step (pipeline_id) WHERE from_second IS NOT NULL;

-- Looked at by every batch of receipts, so it holds no more than what matters now.
CREATE TABLE pipeline_trigger (
    pipeline_id integer REFERENCES pipeline,
    code smallint, -- status or flag that is entered
    wakes boolean, -- false: starts a run; true: some step awaits it
    orgs text[] COLLATE "C", -- NULL: all
    campaigns text[] COLLATE "C",
    PRIMARY KEY (pipeline_id, code, wakes)
);

-- Topics whose records begin runs, and how far they have been read.
CREATE TABLE pipeline_source (
    pipeline_id integer REFERENCES pipeline,
    topic text COLLATE "C",
    orgs text[] COLLATE "C", -- NULL: all
    campaigns text[] COLLATE "C",
    PRIMARY KEY (topic, pipeline_id)
);

CREATE TABLE action_progress (
    topic text COLLATE "C",
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

CREATE TABLE pipeline_pause (
    name text COLLATE "C" PRIMARY KEY,
    paused_at timestamptz NOT NULL DEFAULT now()
);

-- Runs that a transaction started, and those that it did not because of once_per; what became of runs and calls beyond
-- a cap. Appended, added up by actions_tidy().
CREATE TABLE pipeline_delta (
    name text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    repeated bigint NOT NULL,
    refused bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    deferred bigint NOT NULL DEFAULT 0,
    capped bigint NOT NULL DEFAULT 0
);
CREATE TABLE pipeline_total (
    name text COLLATE "C" PRIMARY KEY,
    started bigint NOT NULL,
    repeated bigint NOT NULL,
    refused bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    deferred bigint NOT NULL DEFAULT 0,
    capped bigint NOT NULL DEFAULT 0
);
