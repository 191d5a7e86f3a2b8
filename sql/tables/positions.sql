-- Positions in Kafka, positions that an operator has changed on purpose, and databases that an operator has accepted.
-- No variables; search_path = the schema.

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

-- Written by `receiptd positions set` and `skip-gap`, in the transaction that moves the position. Never deleted.
CREATE TABLE position_change (
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL DEFAULT session_user,
    reader text COLLATE "C" NOT NULL, -- receipts, folds, actions, messages
    topic text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    before text NOT NULL, -- of each lane
    after bigint NOT NULL,
    reason text NOT NULL
);

-- Written by `receiptd positions accept-database`: the server that Kafka's group offsets remember, which this database
-- may follow.
CREATE TABLE database_accepted (
    system_identifier numeric(20) NOT NULL,
    timeline integer NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    accepted_by text NOT NULL DEFAULT session_user,
    PRIMARY KEY (system_identifier, timeline)
);
