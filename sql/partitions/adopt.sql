-- After parent.sql: the table that was the inbox becomes the partition of all ids below a bound, which receiptd_bounds
-- has proved. Its recent set goes. Variables: upper.
ALTER TABLE message_inbox ATTACH PARTITION message_inbox_before FOR VALUES FROM (MINVALUE) TO (:'upper');
ALTER TABLE message_inbox_before DROP CONSTRAINT receiptd_bounds;
DELETE FROM inbox_recent;
DO $$
DECLARE
    old text;
BEGIN
    FOR old IN SELECT x.indexrelid::regclass FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
               WHERE x.indrelid = 'message_inbox_before'::regclass
                 AND i.relname ~ '^message_inbox_recent_([0-9a-f]{8}_)?\d+$' LOOP
        EXECUTE 'DROP INDEX ' || old;
    END LOOP;
END
$$;
