-- Receipts that wait: for their message, or for another part of it. No variables; search_path = the schema.

-- Receipts whose message row does not exist yet. Never updated: a poll that rewrote them would cost 277 MB of WAL for
-- 300 000 rows. The payload is the event's own JSON text, for the dead letter that it may become.
CREATE TABLE parked_event (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer,
    lane integer NOT NULL,
    -- The default collation gives way. In a comparison with the inbox's key, the key's own collation counts,
    -- whichever that is, and its index is used.
    message_id text NOT NULL,
    status smallint NOT NULL, -- status or flag code that the receipt names
    at timestamptz NOT NULL,
    parked_at timestamptz NOT NULL DEFAULT now(),
    payload bytea NOT NULL,
    traceparent text COLLATE "C",
    flags integer NOT NULL DEFAULT 0, -- flags that the event names beside its status, as a mask
    gateway text COLLATE "C", -- that the event names, for figures
    -- The origin of the receipt. With account and gateway_id it finds its message when an alias lands. The org_id is
    -- compared with that of the message, and campaign_id is for the row that `unknown: insert` makes.
    org_id text COLLATE "C",
    account text COLLATE "C", -- that the event names as its gateway: channel_account of message_alias
    campaign_id text COLLATE "C",
    gateway_id text COLLATE "C", -- under which it came; equal to message_id: it waits for an alias
    -- What rules read of it.
    reason_class text COLLATE "C",
    event_key bigint, -- by which echoes are recognised; NULL: not wanted when it was parked
    part smallint, -- part and total that it names; NULL: it names none, or is of a message in one part
    parts smallint,
    -- kinds of machines whose open or click counts beside the status: bits 1 << kind (include/receiptd/core/machine.h)
    machines smallint,
    PRIMARY KEY (topic, partition, "offset", index)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
-- A lane wakes its own rows in the order of their positions.
CREATE INDEX parked_event_lane ON parked_event (lane, topic, partition, "offset", index);
-- "What waits for this message", for operators.
CREATE INDEX parked_event_message ON parked_event (message_id);

-- Parts of messages that are delivered. One row for each message: two instances that note different parts at once
-- wait for each other, and one of them sees all. Receipts only add to it: parts become more, the total and times
-- less.
CREATE TABLE message_part (
    message_id text PRIMARY KEY, -- of the default collation, as in parked_event
    parts smallint NOT NULL, -- how many there are; the smallest number that a receipt named
    delivered smallint[] NOT NULL, -- their numbers, from 1, sorted
    delivered_at timestamptz[] NOT NULL, -- of each of these the earliest event time
    noted_at timestamptz NOT NULL DEFAULT now()
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX message_part_age ON message_part USING brin (noted_at) WITH (pages_per_range = 32);
