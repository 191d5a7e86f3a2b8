-- Partitions that leave the inbox. No variables; search_path = the schema.

-- Messages that are in the inbox no longer and are not booked yet: partitions that `receiptd retire` has detached
-- inherit from this table, from the transaction that detaches them to the one that books and drops them. It has no rows
-- of its own. An audit counts them as live ones; a receipt of them is late.
CREATE TABLE inbox_detached (
    message_id text COLLATE "C" PRIMARY KEY,
    campaign_id text COLLATE "C",
    status smallint NOT NULL,
    flags integer NOT NULL
);

INSERT INTO schema_version (version) VALUES (4) ON CONFLICT DO NOTHING;
