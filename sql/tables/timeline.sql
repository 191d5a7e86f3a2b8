-- Effects of each receipt, for `receiptd explain`. They are written only where timeline.retention is set, in the
-- transaction that applied it. Append-only, trimmed by age. old NULL: the message was not there, the receipt was
-- parked or became a dead letter. No variables; search_path = the schema.
CREATE TABLE message_timeline (
    message_id text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    index integer NOT NULL,
    status smallint NOT NULL, -- status or flag code that the receipt names
    at timestamptz NOT NULL,
    old smallint,
    new smallint,
    gained integer,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    -- Why a message failed, and through whom: as the receipt says it; NULL: it does not. Reasons are personal data:
    -- gateways quote addresses in them.
    gateway text COLLATE "C", -- the account
    reason text COLLATE "C",
    reason_class text COLLATE "C",
    event_id text COLLATE "C",
    part smallint, -- of a message in several parts, and of how many
    parts smallint,
    -- Why it waited although its message was there: part, beside (others of the message wait for a part). NULL:
    -- nothing, or the row.
    waited text COLLATE "C"
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX message_timeline_message ON message_timeline (message_id, recorded_at);
CREATE INDEX message_timeline_age ON message_timeline USING brin (recorded_at) WITH (pages_per_range = 32);
