-- First times of messages (counters.times). No variables; search_path = the schema.

-- One row for each message of which a receipt of SENT, DELIVERED, OPENED or CLICKED was applied: the least event time of those that name the status.
-- A table of its own and not columns of the inbox: a time may get earlier where the message does not change, and a change of its row is a transition for
-- everything that follows it. The row keeps what its histograms count (campaign, gateway), so it says what they must say.
CREATE TABLE message_time (
    message bigint PRIMARY KEY, -- hash of the id, as in receipt_counted: nothing of a person is here
    campaign_id text COLLATE "C" NOT NULL, -- '': none
    gateway text COLLATE "C", -- the first by name of those that these receipts name
    sent_at timestamptz,
    delivered_at timestamptz,
    opened_at timestamptz,
    clicked_at timestamptz,
    begun timestamptz NOT NULL DEFAULT now(), -- when the first of these receipts was applied: forgotten when this is too old
    -- What the row was counted under before its last change: written by the change itself, as prev_status of the inbox is.
    prev_gateway text COLLATE "C",
    prev_deliver smallint, -- buckets; NULL: not counted
    prev_open smallint
) WITH (
    fillfactor = 70, -- neither index has a column that changes, so updates are HOT
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX message_time_begun ON message_time (begun);
CREATE INDEX message_time_campaign ON message_time (campaign_id); -- for the audit

INSERT INTO schema_version (version) VALUES (6) ON CONFLICT DO NOTHING;
