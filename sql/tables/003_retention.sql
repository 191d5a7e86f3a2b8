-- Messages that go: when a message was inserted, what was booked of those that went, and which ids late receipts may
-- still name. No variables; search_path = the schema.

-- Our own inbox, where there is one: a new one gets the column from migrate/inbox_table.sql. The table is not
-- rewritten: rows that are there count from now on.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass('message_inbox') AND c.relkind IN ('r', 'p')) THEN
        ALTER TABLE message_inbox ADD COLUMN IF NOT EXISTS created_at timestamptz NOT NULL DEFAULT now();
    END IF;
END
$$;

-- The same for aliases.
ALTER TABLE message_alias ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();

-- What messages that went had counted: for each campaign, status and flags how many. Live and retired messages together
-- are what the counters say. Append-only; `receiptd retire` adds rows of one kind together.
CREATE TABLE campaign_retired (
    campaign_id text COLLATE "C" NOT NULL, -- '': messages without one
    status smallint, -- NULL: the flags alone are booked, for messages that went without the trigger
    flags integer NOT NULL,
    messages bigint NOT NULL
);
CREATE INDEX campaign_retired_campaign ON campaign_retired (campaign_id);

-- Messages that went, by hashtextextended(message_id, 0): a receipt that names one of them is late. Append-only,
-- trimmed by age.
CREATE TABLE retired_message (
    hash bigint NOT NULL,
    retired_at timestamptz NOT NULL DEFAULT now()
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX retired_message_hash ON retired_message (hash);
CREATE INDEX retired_message_age ON retired_message USING brin (retired_at) WITH (pages_per_range = 32);

-- By their age, for dead_letters.retention.
CREATE INDEX dead_letter_age ON dead_letter USING brin (dead_at) WITH (pages_per_range = 32);

-- Has another name, or another parameter, now.
DROP FUNCTION IF EXISTS organisations_differ(text, text);
DROP FUNCTION IF EXISTS map_inbox(text, text, text, text, text, text, text, text, text, text, text);

INSERT INTO schema_version (version) VALUES (3) ON CONFLICT DO NOTHING;
