-- First times of messages (counters.times), in the row of the message. No variables; search_path = the schema.

-- Our own inbox, where there is one: a new one gets the columns from migrate/inbox_table.sql. No table is rewritten.
-- Detached partitions get them, too: audits read them there, and they may come back.
ALTER TABLE inbox_detached
    ADD COLUMN first_sent_at timestamptz, ADD COLUMN first_delivered_at timestamptz, ADD COLUMN first_opened_at timestamptz,
    ADD COLUMN first_clicked_at timestamptz, ADD COLUMN first_gateway text COLLATE "C", ADD COLUMN prev_times text COLLATE "C";
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('message_inbox') AND c.relkind IN ('r', 'p')) THEN
        ALTER TABLE message_inbox
            ADD COLUMN IF NOT EXISTS first_sent_at timestamptz, ADD COLUMN IF NOT EXISTS first_delivered_at timestamptz,
            ADD COLUMN IF NOT EXISTS first_opened_at timestamptz, ADD COLUMN IF NOT EXISTS first_clicked_at timestamptz,
            ADD COLUMN IF NOT EXISTS first_gateway text COLLATE "C", ADD COLUMN IF NOT EXISTS prev_times text COLLATE "C";
    END IF;
END
$$;

INSERT INTO schema_version (version) VALUES (6) ON CONFLICT DO NOTHING;
