-- Positions that somebody has changed on purpose, and databases that somebody has accepted. No variables; search_path =
-- the schema.

-- Written by `receiptd positions set` and `skip-gap`, in the transaction that moves the position. Never deleted.
CREATE TABLE position_change (
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL DEFAULT session_user,
    reader text COLLATE "C" NOT NULL, -- receipts, folds, actions
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

INSERT INTO schema_version (version) VALUES (2) ON CONFLICT DO NOTHING;
