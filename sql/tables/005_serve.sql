-- What receiptd serve reads: who may ask, and when a campaign's counters changed last. No variables; search_path = the schema.

-- Written by `receiptd serve token`. The token itself is nowhere: it is random, so its SHA-256 is enough to know it again.
CREATE TABLE IF NOT EXISTS serve_token (
    name text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL CHECK (scopes <@ '{read,support,operate}' AND scopes <> '{}'),
    org_id text COLLATE "C", -- NULL: all organisations
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT session_user,
    expires_at timestamptz -- NULL: never
);

-- Set by the roll-up. No index: that would end HOT updates.
ALTER TABLE campaign_funnel_total ADD COLUMN IF NOT EXISTS changed_at timestamptz NOT NULL DEFAULT now();

INSERT INTO schema_version (version) VALUES (5) ON CONFLICT DO NOTHING;
