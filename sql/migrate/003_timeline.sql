-- Version 3: what each receipt did, for `receiptd explain`; written only where timeline.retention is set, in the transaction that
-- applied it. Append-only, trimmed by age. old NULL: the message was not there, the receipt was parked or became a dead
-- letter.
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
    recorded_at timestamptz NOT NULL DEFAULT now()
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX message_timeline_message ON message_timeline (message_id, recorded_at);
CREATE INDEX message_timeline_age ON message_timeline USING brin (recorded_at) WITH (pages_per_range = 32);

INSERT INTO schema_version (version) VALUES (3);
