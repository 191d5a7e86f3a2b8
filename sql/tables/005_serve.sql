-- What receiptd serve reads: who may ask, and when a campaign's counters changed last. No variables; search_path = the
-- schema.

-- Written by `receiptd serve token`. The token itself is nowhere: it is random, so its SHA-256 is enough to know it
-- again.
CREATE TABLE IF NOT EXISTS serve_token (
    name text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL CHECK (scopes <@ '{read,support,operate}' AND scopes <> '{}'),
    org_id text COLLATE "C", -- NULL: all organisations
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT session_user,
    expires_at timestamptz -- NULL: never
);

-- When the roll-up last changed the totals of a campaign: one narrow row for each, since readers look through all of
-- them. No index on the time: that would end HOT updates.
CREATE TABLE IF NOT EXISTS campaign_changed (
    campaign_id text COLLATE "C" PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
INSERT INTO campaign_changed (campaign_id) SELECT DISTINCT t.campaign_id FROM campaign_funnel_total t ON CONFLICT DO NOTHING;

INSERT INTO schema_version (version) VALUES (5) ON CONFLICT DO NOTHING;
