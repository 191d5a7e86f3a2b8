-- A recent set by ids. No variables; search_path = the schema.

-- Of a table that is partitioned by ranges of the message's id: the lower bound of its newest partitions, in place of a
-- time.
ALTER TABLE inbox_recent
    ALTER COLUMN since DROP NOT NULL,
    ADD COLUMN IF NOT EXISTS first_id text,
    DROP CONSTRAINT IF EXISTS inbox_recent_boundary,
    ADD CONSTRAINT inbox_recent_boundary CHECK (num_nonnulls(since, first_id) = 1);
