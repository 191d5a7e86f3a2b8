-- The partitions of an inbox whose partitions somebody else makes (inbox.partitions: external). No variables;
-- search_path = the schema.

-- One row for each partition with messages that `receiptd maintain` has seen, so that it notices when one has left the
-- inbox. The row goes when a partition that is booked is dropped; views/inbox_partition_state says how each stands.
-- regclass, so that a dump and its restore keep them.
CREATE TABLE IF NOT EXISTS inbox_partition (
    part regclass PRIMARY KEY,
    inbox regclass NOT NULL, -- the table that it is a partition of
    name text COLLATE "C" NOT NULL, -- as it was last seen there, for one that was dropped
    message_id name NOT NULL, -- what our columns are called in it
    campaign_id name NOT NULL,
    status name NOT NULL,
    flags name NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now(),
    booked_at timestamptz -- when it had left and was booked; NULL: not yet
);

INSERT INTO schema_version (version) VALUES (6) ON CONFLICT DO NOTHING;
