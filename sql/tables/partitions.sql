-- The inbox's partitions: those that have left it, and those that receiptd does not make. No variables; search_path =
-- the schema.

-- Messages that are in the inbox no longer and are not booked yet. Partitions that `receiptd retire` has detached
-- inherit from this table, from the transaction that detaches them to the one that books and drops them. It has no
-- rows of its own. An audit counts them as live ones; a receipt of them is late.
CREATE TABLE inbox_detached (
    message_id text COLLATE "C" PRIMARY KEY,
    campaign_id text COLLATE "C",
    status smallint NOT NULL,
    flags integer NOT NULL,
    -- First times (counters.times), which audits read here, too.
    first_sent_at timestamptz,
    first_delivered_at timestamptz,
    first_opened_at timestamptz,
    first_gateway text COLLATE "C"
);

-- Where inbox.partitions is external: one row for each partition with messages that `receiptd maintain` has seen, so
-- that it notices when one has left the inbox. The row goes when a partition that is booked is dropped;
-- views/inbox_partition_state says how each stands. regclass, so that a dump and its restore keep them.
CREATE TABLE inbox_partition (
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
