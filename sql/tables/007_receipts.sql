-- What dead letters and the timeline keep of a receipt. No variables; search_path = the schema.

-- The time that a receipt has where its text names none, so that a redrive gives it the same: that of its record in
-- Kafka. NULL: the letter is of an older version.
ALTER TABLE dead_letter ADD COLUMN IF NOT EXISTS at timestamptz;

-- Of a letter for many receipts of a record, which were refused for one reason: their indexes, in the order of the
-- array that is its payload. NULL: it is of one.
ALTER TABLE dead_letter ADD COLUMN IF NOT EXISTS indexes integer[];

-- Why a message failed, and through whom: as the receipt says it; NULL: it does not. Reasons are personal data:
-- gateways quote addresses in them.
ALTER TABLE message_timeline
    ADD COLUMN IF NOT EXISTS gateway text COLLATE "C", -- the account
    ADD COLUMN IF NOT EXISTS reason text COLLATE "C",
    ADD COLUMN IF NOT EXISTS reason_class text COLLATE "C",
    ADD COLUMN IF NOT EXISTS event_id text COLLATE "C",
    ADD COLUMN IF NOT EXISTS part smallint, -- of a message in several parts, and of how many
    ADD COLUMN IF NOT EXISTS parts smallint,
    -- Why it waited although its message was there: part, beside (others of the message wait for a part). NULL:
    -- nothing, or the row.
    ADD COLUMN IF NOT EXISTS waited text COLLATE "C";

INSERT INTO schema_version (version) VALUES (7) ON CONFLICT DO NOTHING;
