-- Counters of campaigns: deltas, which transactions append, and totals, which the roll-up makes of them. No variables;
-- search_path = the schema.

-- Counters are cells: a kind, a campaign, a time, a key and a status have a number of messages and of events. A
-- transaction appends one row of arrays for each kind. It updates nothing, so no two transactions wait for a counter
-- and no open snapshot slows them down. The roll-up empties the table all the time: vacuum by number of rows, not by
-- share. Members of groups are no cells (group_delta): a group folds what its members went through.
CREATE TABLE counter_delta (
    id bigserial PRIMARY KEY,
    -- 'funnel'; 'time_place': places in the histograms of times (time_place()), of which the
    -- roll-up makes cells; all others as in campaign_tally_total.
    kind text COLLATE "C" NOT NULL,
    campaign_id text[] COLLATE "C" NOT NULL, -- '': messages without one, or counts of no campaign
    at timestamptz[], -- of the funnel the minute; begin of the hour or minute; NULL or -infinity: not by time
    key text[] COLLATE "C", -- NULL: as ''
    status smallint[] NOT NULL,
    messages bigint[] NOT NULL,
    events bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
-- With it readers of one kind pass by the others, also by rows that are rolled up and that an open snapshot keeps.
CREATE INDEX counter_delta_kind ON counter_delta (kind, id);

-- The funnel, rolled up.
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

-- All other kinds, rolled up: 'hour' and 'minute' of the funnel, 'reason', 'duplicate', 'gateway',
-- 'gateway_…', 'by_…', 'cost', 'cost_amount' (view campaign_cost). at: -infinity: not by time.
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

-- When the roll-up last changed the totals of a campaign: one narrow row for each, since readers look through all of
-- them. No index on the time: that would end HOT updates.
CREATE TABLE campaign_changed (
    campaign_id text COLLATE "C" PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Organisations that have messages in a campaign. count_inserted() appends a pair that it does not see here: two
-- transactions may both append it, and neither waits for the other.
CREATE TABLE campaign_organisation (
    campaign_id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL -- '': messages without one
);
CREATE INDEX campaign_organisation_campaign ON campaign_organisation (campaign_id, org_id);
