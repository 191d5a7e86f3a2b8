-- The recent set of the inbox. No variables; search_path = the schema.

-- The boundary of the recent set, and the index over its messages, or the table of which they are the newest
-- partitions. No row: there is no recent set. `receiptd maintain` writes it once the index is finished, and every
-- instance reads it.
CREATE TABLE inbox_recent (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz,
    index_schema text NOT NULL,
    index_name text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    -- The lower bound of the newest partitions, in place of a time, for a table that is partitioned by ranges of the
    -- message's id.
    first_id text,
    CONSTRAINT inbox_recent_boundary CHECK (num_nonnulls(since, first_id) = 1)
);
