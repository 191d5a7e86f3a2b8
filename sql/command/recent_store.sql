-- Stores the boundary that instances use from now on: $1 text since, or NULL and $4 text first_id. Parameters $2 text
-- schema and $3 text name: of the index, which is finished, or of the table whose newest partitions are the set.
INSERT INTO inbox_recent (since, index_schema, index_name, first_id)
VALUES ($1::timestamptz, $2::text, $3::text, $4::text)
ON CONFLICT (one) DO UPDATE
SET since = EXCLUDED.since, index_schema = EXCLUDED.index_schema,
    index_name = EXCLUDED.index_name, first_id = EXCLUDED.first_id, made_at = now()
