-- Our own inbox, the default. Variables: fillfactor (50: all rows of a page can be updated once without a new index
-- entry). The platform inserts message_id, org_id and campaign_id and never touches the rest. Only what never changes
-- is indexed: an index on status would end HOT updates.
CREATE TABLE message_inbox (
    message_id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C",
    campaign_id text COLLATE "C",
    status smallint NOT NULL DEFAULT 0,
    prev_status smallint,
    flags integer NOT NULL DEFAULT 0,
    prev_flags integer,
    status_at timestamptz,
    updated_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(), -- for retention, and for the recent rows
    -- counters.times: the least event times of receipts that name the status, and the first by name of the gateways
    -- that these name
    first_sent_at timestamptz,
    first_delivered_at timestamptz,
    first_opened_at timestamptz,
    first_clicked_at timestamptz,
    first_gateway text COLLATE "C",
    prev_times text COLLATE "C" -- what the row counted as before its last change (time_place()); written by the change itself, as prev_status is
) WITH (
    fillfactor = :fillfactor,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
-- For the audit, campaign by campaign.
CREATE INDEX message_inbox_campaign ON message_inbox (campaign_id);
