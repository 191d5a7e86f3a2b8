-- The n-th of the texts that stand one behind the other in bytes, each from its first byte to that of the next; NULL: it is empty.
-- Plain SQL, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION batch_text(bytes bytea, first_bytes int4[], n int4) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT NULLIF(convert_from(substr(bytes, first_bytes[n], first_bytes[n + 1] - first_bytes[n]), 'UTF8'), '')
$$;
