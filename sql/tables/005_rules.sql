-- What the rules of batches count and keep (sql/lane/rules). No variables; search_path = the schema.

-- As campaign_funnel_delta: append-only, one row of arrays for each rule and transaction, emptied by the roll-up.
CREATE TABLE campaign_tally_delta (
    id bigserial PRIMARY KEY,
    kind text COLLATE "C" NOT NULL, -- what is counted: 'hour', 'minute', 'reason', 'duplicate', 'gateway', 'gateway_…'
    campaign_id text[] COLLATE "C" NOT NULL, -- '': messages without one, or counts of no campaign
    at timestamptz[] NOT NULL, -- begin of the hour or minute; -infinity: not by time
    key text[] COLLATE "C" NOT NULL,
    status smallint[] NOT NULL,
    messages bigint[] NOT NULL,
    events bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- Deltas, rolled up.
CREATE TABLE campaign_tally_total (
    campaign_id text COLLATE "C",
    kind text COLLATE "C",
    at timestamptz,
    key text COLLATE "C",
    status smallint,
    messages bigint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (campaign_id, kind, at, key, status)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
-- Rows by time are deleted when they are too old.
CREATE INDEX campaign_tally_age ON campaign_tally_total (kind, at) WHERE at > '-infinity';

-- Receipts that were counted, by hashes of message and event: a second one is an echo (dedup.window). A partition has
-- those of one day: `receiptd maintain` makes it ahead and drops it when the day is out of the window
-- (dedup_partitions()).
CREATE TABLE receipt_counted (
    day date NOT NULL, -- of the receipt's event time, in UTC
    message bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (day, message, event)
) PARTITION BY RANGE (day);
-- Days without a partition of their own: no batch may fail where `maintain` does not run. Its rows are deleted.
CREATE TABLE receipt_counted_other PARTITION OF receipt_counted DEFAULT;

-- What the rules read of a receipt that was parked.
ALTER TABLE parked_event
    ADD COLUMN IF NOT EXISTS reason_class text COLLATE "C",
    ADD COLUMN IF NOT EXISTS event_key bigint; -- by which echoes are recognised; NULL: not wanted when it was parked

-- Replaced by one with more parameters.
DROP FUNCTION IF EXISTS install_inbox_trigger(text, text, text, text, text, text);

INSERT INTO schema_version (version) VALUES (5) ON CONFLICT DO NOTHING;
