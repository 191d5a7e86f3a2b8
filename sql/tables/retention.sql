-- Counts that were booked for messages that went, and ids that late receipts may still name. No variables;
-- search_path = the schema.

-- Counts of messages that went: for each campaign, status and flags how many. Live and retired messages together are
-- what the counters say. Append-only; `receiptd retire` adds rows of one kind together.
CREATE TABLE campaign_retired (
    campaign_id text COLLATE "C" NOT NULL, -- '': messages without one
    status smallint, -- NULL: the flags alone are booked, for messages that went without the trigger
    flags integer NOT NULL,
    messages bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX campaign_retired_campaign ON campaign_retired (campaign_id);

-- Messages that went, by hashtextextended(message_id, 0): a receipt that names one of them is late. Append-only,
-- trimmed by age.
CREATE TABLE retired_message (
    hash bigint NOT NULL,
    retired_at timestamptz NOT NULL DEFAULT now(),
    -- The message was erased, not only deleted: the dead letter of a late receipt keeps none of it. For a receipt
    -- under the gateway's id, the hash is that of account and id (erased_alias_hash()).
    erased boolean NOT NULL DEFAULT false
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX retired_message_hash ON retired_message (hash);
CREATE INDEX retired_message_age ON retired_message USING brin (retired_at) WITH (pages_per_range = 32);

-- Written by `receiptd maintain` when it has walked all tables, so that one that runs every hour walks them once a day.
CREATE TABLE maintained (
    -- 'walk', or 'proof': its time moves on by a hundred times what the recounts took
    task text PRIMARY KEY,
    ended_at timestamptz NOT NULL DEFAULT now()
);

-- When `receiptd maintain` last recounted the campaign, and how many cells of its counters were off.
CREATE TABLE campaign_proof (
    campaign_id text COLLATE "C" PRIMARY KEY,
    proven_at timestamptz NOT NULL DEFAULT now(),
    drift integer NOT NULL
);
CREATE INDEX campaign_proof_age ON campaign_proof (proven_at);
CREATE INDEX campaign_proof_drift ON campaign_proof (campaign_id) WHERE drift > 0;
