-- Tokens of receiptd serve. No variables; search_path = the schema.

-- Written by `receiptd serve token`. The token itself is nowhere: it is random, so its SHA-256 is enough to know it
-- again.
CREATE TABLE serve_token (
    name text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL CHECK (scopes <@ '{read,support,operate,suppressions}' AND scopes <> '{}'),
    org_id text COLLATE "C", -- NULL: all organisations
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT session_user,
    expires_at timestamptz -- NULL: never
);
