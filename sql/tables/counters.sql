-- Counters of campaigns: deltas, which transactions append, and totals, which the roll-up makes of them. No variables;
-- search_path = the schema.

-- Append-only: a transaction inserts one row of arrays. Nothing is updated, so no two transactions wait for a counter
-- and no open snapshot slows them down. The roll-up empties it all the time: vacuum by number of rows, not by share.
CREATE TABLE campaign_funnel_delta (
    id bigserial PRIMARY KEY,
    campaign_id text[] COLLATE "C" NOT NULL,
    status smallint[] NOT NULL,
    messages bigint[] NOT NULL,
    events bigint[] NOT NULL,
    minute bigint[] -- since 1970-01-01 UTC; the roll-up makes hours and minutes of it; NULL: no series
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- Deltas, rolled up. Messages without a campaign count under ''.
CREATE TABLE campaign_funnel_total (
    campaign_id text COLLATE "C",
    status smallint,
    messages bigint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (campaign_id, status)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

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

-- As campaign_funnel_delta: append-only, one row of arrays for each transaction, emptied by the roll-up. Few messages
-- of a batch share campaign and bucket, so the roll-up, which sees many batches at once, adds them up, and not the
-- batch.
CREATE TABLE campaign_time_delta (
    id bigserial PRIMARY KEY,
    campaign_id text[] COLLATE "C" NOT NULL, -- of each message; '': none
    gateway text[] COLLATE "C" NOT NULL, -- first_gateway; '': none
    -- Bucket of the time from SENT to DELIVERED (time_bucket()); NULL: one of them is not known.
    deliver smallint[] NOT NULL,
    open smallint[] NOT NULL, -- the same from DELIVERED to OPENED
    left_campaign_id text[] COLLATE "C", -- of those among them that had a place before; NULL: none had
    left_place text[] COLLATE "C" -- which one (time_place())
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- When the roll-up last changed the totals of a campaign: one narrow row for each, since readers look through all of
-- them. No index on the time: that would end HOT updates.
CREATE TABLE campaign_changed (
    campaign_id text COLLATE "C" PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Which organisations have messages in a campaign. Appended by count_inserted() when it sees a pair that is not there:
-- two transactions may both append it, and neither waits for the other.
CREATE TABLE campaign_organisation (
    campaign_id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL -- '': messages without one
);
CREATE INDEX campaign_organisation_campaign ON campaign_organisation (campaign_id, org_id);
