-- The index is finished: from now on instances use it. $1 text since, $2 text schema and $3 text name of the index.
INSERT INTO inbox_recent (since, index_schema, index_name) VALUES ($1::timestamptz, $2::text, $3::text)
ON CONFLICT (one) DO UPDATE SET since = EXCLUDED.since, index_schema = EXCLUDED.index_schema, index_name = EXCLUDED.index_name, made_at = now()
