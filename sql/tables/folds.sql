-- The tables of folds, one publication for each burst of events of a group: rows that lanes append, open groups,
-- claimed groups. No variables; search_path = the schema.

-- The rules as the instance that read its configuration last has them; sql/fold/rules.sql writes it. A removed rule
-- stays until its last group was published.
CREATE TABLE fold_rule (
    rule text COLLATE "C" PRIMARY KEY,
    source text NOT NULL, -- transitions, topic
    topic text COLLATE "C", -- that a rule of source topic reads
    match jsonb NOT NULL, -- field -> array of texts, one of which it must be
    by_campaign boolean NOT NULL,
    by_org boolean NOT NULL,
    by_status boolean NOT NULL,
    kinds jsonb NOT NULL, -- of what is collected: name -> kind
    fields jsonb NOT NULL, -- name -> field
    "window" interval NOT NULL,
    max_hold interval NOT NULL,
    max_events bigint NOT NULL,
    max_values integer NOT NULL,
    funnel boolean NOT NULL,
    target text NOT NULL, -- kafka, webhook
    destination text NOT NULL, -- topic or URL
    message_key text NOT NULL, -- of the published record: group, id, or a field of the group key
    removed_at timestamptz,
    by_prev_status boolean NOT NULL DEFAULT false,
    by_flags boolean NOT NULL DEFAULT false,
    key_columns text[] NOT NULL DEFAULT '{}', -- columns of the inbox in the group key
    columns text[] NOT NULL DEFAULT '{}' -- all that the rule reads
);

-- Events for folds: lanes and the reader of topics append one row for each transaction, and the publisher takes it
-- away. Rows of transitions have orgs to gained, and columns where a rule reads any. Rows of topics have rules, keys,
-- parts. firsts and lasts (microseconds since 1970) stand in place of `at` where a publisher has kept sums back.
-- first_rows and last_rows stand in place of `id` there: the transitions of a message have it in their order.
CREATE TABLE fold_event (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    orgs text[], campaigns text[], old smallint[], new smallint[], gained integer[],
    rules text[], keys text[], parts text[], -- JSON, read when it is gathered
    n bigint[] NOT NULL,
    columns text[], -- of the inbox, each a JSON object
    links text[], -- a traceparent of each
    size integer NOT NULL DEFAULT 1000, -- entries
    firsts bigint[], lasts bigint[],
    first_rows bigint[], last_rows bigint[]
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Short-lived: to compress them costs more than it saves.
ALTER TABLE fold_event ALTER COLUMN parts SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL,
    ALTER COLUMN rules SET STORAGE EXTERNAL, ALTER COLUMN columns SET STORAGE EXTERNAL;

-- A group, open while events > 0. due_at is never later than the moment at which the group has to be checked again.
-- Events that come leave it alone, so that their update stays on the page. Closed groups keep their number until they
-- are forgotten.
CREATE TABLE fold_group (
    rule text COLLATE "C",
    key text COLLATE "C", -- the JSON object of the group's fields
    lane smallint NOT NULL,
    number bigint NOT NULL, -- of the publication that the group is open for
    events bigint NOT NULL,
    first_at timestamptz,
    last_at timestamptz,
    due_at timestamptz, -- NULL: closed
    collected jsonb NOT NULL,
    opened_at timestamptz, -- by the database's clock, as all times here
    published_at timestamptz,
    PRIMARY KEY (rule, key)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX fold_group_due ON fold_group (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX fold_group_closed ON fold_group (lane, published_at) WHERE due_at IS NULL;

-- Groups, and rows of the stream, that were claimed and are not known to be published. seq is dense in each lane and
-- stands, as an offset, in Kafka's own transaction (docs/folds.md). So seq tells which of them are published.
CREATE TABLE fold_outbox (
    lane smallint,
    seq bigint,
    rule text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    destination text NOT NULL,
    message_key text,
    payload text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    event bigint, -- of stream_event: the whole row in place of a payload
    PRIMARY KEY (lane, seq)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Groups that were claimed for a webhook, until it has answered with 2xx. Moving retry_at on claims one for an
-- attempt: if an instance dies in the middle of it, the next one takes over. Column failed_at: given up, kept for a
-- person to see.
CREATE TABLE fold_call (
    id text COLLATE "C" PRIMARY KEY,
    lane smallint NOT NULL,
    rule text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    wait_ms bigint NOT NULL DEFAULT 0, -- the last one
    retry_at timestamptz NOT NULL DEFAULT now(),
    failed_at timestamptz,
    error text
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX fold_call_due ON fold_call (lane, retry_at) WHERE failed_at IS NULL;

-- A lane of the publisher; the last one is that of the stream (stream_event). The epoch belongs to its present owner.
-- Numbers of groups begin above the largest forgotten one.
CREATE TABLE fold_lane (
    lane smallint PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    next_seq bigint NOT NULL DEFAULT 1,
    number_floor bigint NOT NULL DEFAULT 0,
    lost_claims bigint NOT NULL DEFAULT 0, -- published, but the database went back behind the claim
    ticks bigint NOT NULL DEFAULT 0,
    gathered_at timestamptz -- of lane 0: all events that were there at this time are in groups
) WITH (fillfactor = 50);
INSERT INTO fold_lane (lane) VALUES (0), (1), (2);

-- Exact counts; a row is written by its lane alone.
CREATE TABLE fold_total (
    rule text COLLATE "C",
    lane smallint,
    events bigint NOT NULL DEFAULT 0,
    groups bigint NOT NULL DEFAULT 0, -- opened
    quiet bigint NOT NULL DEFAULT 0,
    hold bigint NOT NULL DEFAULT 0,
    "full" bigint NOT NULL DEFAULT 0,
    removed bigint NOT NULL DEFAULT 0,
    avoidable bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (rule, lane)
) WITH (fillfactor = 50);

-- Positions of the reader of topics, moved in the transaction that appends the rows that it read.
CREATE TABLE fold_progress (
    topic text COLLATE "C",
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);
