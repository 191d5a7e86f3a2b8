-- Which messages have got a place in the histograms of times (counters.times), or another one. No variables;
-- search_path = the schema.

-- As campaign_funnel_delta: append-only, one row of arrays for each transaction, emptied by the roll-up. Few messages
-- of a batch share campaign and bucket, so the roll-up, which sees many batches at once, adds them up, and not the
-- batch.
CREATE TABLE IF NOT EXISTS campaign_time_delta (
    id bigserial PRIMARY KEY,
    campaign_id text[] COLLATE "C" NOT NULL, -- of each message; '': none
    gateway text[] COLLATE "C" NOT NULL, -- first_gateway; '': none
    deliver smallint[] NOT NULL, -- bucket of the time from SENT to DELIVERED (time_bucket()); NULL: one of them is not known
    open smallint[] NOT NULL, -- the same from DELIVERED to OPENED
    left_campaign_id text[] COLLATE "C", -- of those among them that had a place before; NULL: none had
    left_place text[] COLLATE "C" -- which one (time_place())
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
