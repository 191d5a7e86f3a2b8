-- The traceparent of a batch's record (1-based), NULL if it has none. traceparents: 55 bytes for each record, blanks
-- for one without; empty if no record has one. A plain expression, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION record_link(traceparents bytea, record int4) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT NULLIF(rtrim(convert_from(substr(traceparents, 55 * record - 54, 55), 'UTF8')), '')
$$;
