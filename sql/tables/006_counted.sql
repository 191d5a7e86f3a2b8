-- The keys of counted receipts in the row of their message (dedup.window). No variables; search_path = the schema.

-- Our own inbox, where there is one: a new one gets the column from migrate/inbox_table.sql. The table is not
-- rewritten. Detached partitions get it, too, since they may come back.
DO $$
DECLARE
    part text;
BEGIN
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('message_inbox') AND c.relkind IN ('r', 'p')) THEN
        ALTER TABLE message_inbox ADD COLUMN IF NOT EXISTS counted bytea;
        FOR part IN SELECT i.inhrelid::regclass FROM pg_inherits i WHERE i.inhparent = to_regclass('inbox_detached') LOOP
            EXECUTE format('ALTER TABLE %s ADD COLUMN IF NOT EXISTS counted bytea', part);
        END LOOP;
    END IF;
END
$$;

INSERT INTO schema_version (version) VALUES (6) ON CONFLICT DO NOTHING;
