-- Receipts of all messages to a person up to a time, which name no message ("ranges"). No variables; search_path = the
-- schema.

-- A range whose messages are still looked for. The lane of its person owns it: lane/range_resolve.sql parks a receipt
-- for each of its messages, some at a time, and deletes it. The recipient is personal data: a row stays for
-- parked.alias_wait, or as long as its lane is behind.
CREATE TABLE range_receipt (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer,
    lane integer NOT NULL,
    -- The default collation gives way to that of the inbox's columns, as in parked_event.
    account text NOT NULL,
    recipient text NOT NULL,
    org_id text COLLATE "C",
    status smallint NOT NULL,
    until timestamptz NOT NULL, -- messages that were sent after it are not meant
    at timestamptz NOT NULL,
    gateway text COLLATE "C", -- for figures
    traceparent text COLLATE "C",
    stored_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(), -- when its messages are looked for, or looked for again
    looks smallint NOT NULL DEFAULT 0, -- how often all of them were
    after_at timestamptz NOT NULL DEFAULT '-infinity', -- time and id of the last message that this look has seen
    after_id text NOT NULL DEFAULT '',
    found integer NOT NULL DEFAULT 0, -- messages so far for which a receipt was parked
    PRIMARY KEY (topic, partition, "offset", index)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
-- A lane resolves its own rows in the order of their positions.
CREATE INDEX range_receipt_lane ON range_receipt (lane, topic, partition, "offset", index);
CREATE INDEX range_receipt_recipient ON range_receipt (recipient); -- for erasures
