-- The tables of receipts: ladder, counters, positions, parked receipts, dead letters, aliases, timeline. No variables;
-- search_path = the configured schema. Migrations make the inbox separately: inbox_table.sql (our own) or
-- inbox_view.sql (an existing table), then inbox_trigger.sql. Functions and views are in sql/functions and sql/views.
-- Texts are COLLATE "C": one total order for us (memcmp) and for PostgreSQL, whatever the database's locale is.

CREATE TABLE schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The functions and views that are in the schema, each with the hash of its file: migrate replaces those that differ.
CREATE TABLE schema_part (
    name text COLLATE "C" PRIMARY KEY, -- of the file: functions/fence
    hash text COLLATE "C" NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The ladder, as the configuration has it; filled by ladder_fill(), pinned by consumer_topic.ladder_hash.
-- --------------

-- Its hash, one row: a daemon whose configuration has another ladder does not consume.
CREATE TABLE status_ladder (
    hash text COLLATE "C" NOT NULL
);

-- Statuses (flag_bit NULL) and flags (code = 9001 + flag_bit, no parent). A code is a priority.
CREATE TABLE message_status_priority (
    code smallint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    parent smallint,
    priority smallint NOT NULL,
    terminal boolean NOT NULL DEFAULT false,
    flag_bit smallint UNIQUE,
    implies smallint,
    CHECK (flag_bit IS NULL OR code = 9001 + flag_bit),
    CHECK (flag_bit IS NOT NULL OR code BETWEEN 0 AND 9000)
);

-- Every status with all statuses on its path from the root, itself and the root included.
CREATE TABLE status_path (
    code smallint,
    ancestor smallint,
    PRIMARY KEY (code, ancestor)
);

-- What a transition old -> new does to the counters: path(new) - path(old). Telescopes over any sequence of
-- transitions.
CREATE TABLE path_delta (
    old smallint,
    new smallint,
    code smallint,
    delta smallint NOT NULL,
    PRIMARY KEY (old, new, code)
);

-- A name that means another status on a channel. For readers: the decoder has its own copy from the configuration.
CREATE TABLE status_override (
    channel text COLLATE "C",
    status text COLLATE "C",
    becomes text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel, status)
);

-- Counters. ----------------------------------------------------------------------------------------------------------

-- Append-only: a transaction inserts one row of arrays. Nothing is updated, so no two transactions wait for a counter
-- and no open snapshot slows them down. The roll-up empties it all the time: vacuum by number of rows, not by share.
CREATE TABLE campaign_funnel_delta (
    id bigserial PRIMARY KEY,
    campaign_id text[] COLLATE "C" NOT NULL,
    status smallint[] NOT NULL,
    messages bigint[] NOT NULL,
    events bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- Deltas, rolled up. Messages without a campaign count under ''.
CREATE TABLE campaign_funnel_total (
    campaign_id text COLLATE "C",
    status smallint,
    messages bigint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (campaign_id, status)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Positions. ---------------------------------------------------------------------------------------------------------

-- The only place where these are pinned; a configuration that differs refuses to start.
CREATE TABLE consumer_topic (
    topic text COLLATE "C" PRIMARY KEY,
    cluster_id text COLLATE "C" NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    lanes integer NOT NULL,
    hash_version integer NOT NULL,
    ladder_hash text COLLATE "C" NOT NULL,
    partitions integer NOT NULL DEFAULT 0
);

-- Where each lane of each partition stands. The anchor is the last record delivered below next_offset: it tells one
-- incarnation of a topic from another. Free space on the page keeps every update HOT.
CREATE TABLE consumer_progress (
    topic text COLLATE "C",
    partition integer,
    lane integer,
    next_offset bigint NOT NULL,
    generation bigint NOT NULL,
    anchor_offset bigint,
    anchor_timestamp bigint, -- milliseconds since 1970
    anchor_crc bigint,
    PRIMARY KEY (topic, partition, lane)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- What waits, and what could not be applied.
-- -----------------------------------------------------------------------------

-- Receipts whose message row does not exist yet. Never updated: a poll that rewrote them would cost 277 MB of WAL for
-- 300 000 rows. The payload is the event's own JSON text, for the dead letter that it may become.
CREATE TABLE parked_event (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer,
    lane integer NOT NULL,
    -- Of the default collation, which gives way: compared with the inbox's key, whatever collation that has, the key's
    -- own counts, and its index is used.
    message_id text NOT NULL,
    status smallint NOT NULL, -- status or flag code that the receipt names
    at timestamptz NOT NULL,
    parked_at timestamptz NOT NULL DEFAULT now(),
    payload bytea NOT NULL,
    traceparent text COLLATE "C",
    flags integer NOT NULL DEFAULT 0, -- flags that the event names beside its status, as a mask
    gateway text COLLATE "C", -- that the event names, for figures
    PRIMARY KEY (topic, partition, "offset", index)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
-- A lane wakes its own rows in the order of their positions.
CREATE INDEX parked_event_lane ON parked_event (lane, topic, partition, "offset", index);
-- "What waits for this message", for operators.
CREATE INDEX parked_event_message ON parked_event (message_id);

CREATE TABLE dead_letter (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer, -- position in the record; -1: the whole record
    lane integer NOT NULL,
    reason text COLLATE "C" NOT NULL,
    detail text COLLATE "C",
    payload bytea,
    traceparent text COLLATE "C",
    dead_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, partition, "offset", index)
);

-- Gateways, and what each receipt did.
-- ------------------------------------------------------------------------------------

-- Ids that gateways give to messages. The platform inserts a row when a gateway has answered a submission; the
-- intake looks up what a receipt names. Ids of different accounts are different things, even when they are equal.
CREATE TABLE message_alias (
    channel_account text COLLATE "C" NOT NULL,  -- name of the account in intake.accounts
    gateway_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel_account, gateway_id)
);

-- What each receipt did, for `receiptd explain`; written only where timeline.retention is set, in the transaction that
-- applied it. Append-only, trimmed by age. old NULL: the message was not there, the receipt was parked or became a dead
-- letter.
CREATE TABLE message_timeline (
    message_id text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    index integer NOT NULL,
    status smallint NOT NULL, -- status or flag code that the receipt names
    at timestamptz NOT NULL,
    old smallint,
    new smallint,
    gained integer,
    recorded_at timestamptz NOT NULL DEFAULT now()
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX message_timeline_message ON message_timeline (message_id, recorded_at);
CREATE INDEX message_timeline_age ON message_timeline USING brin (recorded_at) WITH (pages_per_range = 32);

INSERT INTO schema_version (version) VALUES (1);
