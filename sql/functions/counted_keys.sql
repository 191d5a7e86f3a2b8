-- The keys of receipts that the row of a message has (lane/apply/45_doubtful.sql), as it is now: volatile, so that each
-- call has a snapshot of its own. NULL: it has none, or the message is gone. column_name: of the inbox.
CREATE OR REPLACE FUNCTION counted_keys(id text, column_name text) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    keys bytea;
BEGIN
    EXECUTE format('SELECT string_agg(m.%I, '''') FROM message_inbox m WHERE m.message_id = $1', column_name) INTO keys USING id;
    RETURN keys;
END
$$;
