-- The recent set of the inbox. No variables; search_path = the schema.

-- Since when a message is recent, and the index over those, or the table of which they are the newest partitions:
-- written by `receiptd maintain` once the index is finished, read by every instance. No row: there is no recent set.
CREATE TABLE inbox_recent (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz,
    index_schema text NOT NULL,
    index_name text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    -- Of a table that is partitioned by ranges of the message's id: the lower bound of its newest partitions, in place
    -- of a time.
    first_id text,
    CONSTRAINT inbox_recent_boundary CHECK (num_nonnulls(since, first_id) = 1)
);
