-- Pushes that a step `split` deals (docs/push.md). A push is a name under which no person is reached twice, over all
-- pipelines. No variables; search_path = the schema.

-- One row for each push. `rule` is the split as the configuration had it when the first subject arrived: later
-- changes of the file do not touch a push that has begun. Each column of a time is written once.
CREATE TABLE push (
    name text COLLATE "C" PRIMARY KEY,
    rule jsonb NOT NULL, -- as src/config/pipelines_split.c writes it
    started_at timestamptz, -- the first subject arrived
    deal_at timestamptz, -- with sizes: when those who gathered are dealt
    dealt_at timestamptz, -- with shares: started_at, since each subject is dealt on arrival
    decide_at timestamptz, -- the horizon
    decided_at timestamptz,
    winner text COLLATE "C", -- a stage; NULL after decided_at: nobody
    decided_by text COLLATE "C", -- 'rule', 'otherwise' or a person
    figures jsonb -- the KPI of each stage at decided_at
);
CREATE INDEX push_open ON push (name) WHERE started_at IS NOT NULL AND decided_at IS NULL;
CREATE INDEX push_gathering ON push (name) WHERE started_at IS NOT NULL AND dealt_at IS NULL;

-- Which runs were dealt to a variant; all others are the remainder. Only inserted and deleted.
CREATE TABLE push_member (
    run_id bigint PRIMARY KEY,
    push text COLLATE "C" NOT NULL,
    stage text COLLATE "C" NOT NULL
);
CREATE INDEX push_member_stage ON push_member (push, stage);
