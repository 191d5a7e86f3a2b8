-- Messages in several parts, each with receipts of its own. No variables; search_path = the schema.

-- Which parts of a message are delivered. One row for each message, so that two instances that note different parts at
-- once wait for each other, and one of them sees all. Receipts only add to it: parts become more, the total less, the
-- time later.
CREATE TABLE message_part (
    message_id text PRIMARY KEY, -- of the default collation, which gives way to that of the inbox's key, as in parked_event
    parts smallint NOT NULL, -- how many there are; the smallest number that a receipt named
    delivered smallint[] NOT NULL, -- their numbers, from 1, sorted
    delivered_at timestamptz NOT NULL, -- event time of the last of them
    noted_at timestamptz NOT NULL DEFAULT now()
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX message_part_age ON message_part USING brin (noted_at) WITH (pages_per_range = 32);

-- Part and total that a parked receipt names; NULL: of a message in one part.
ALTER TABLE parked_event
    ADD COLUMN IF NOT EXISTS part smallint,
    ADD COLUMN IF NOT EXISTS parts smallint;

-- Which part of a message a gateway's id is of, and of how many, where the platform knows and the gateway does not say.
-- Both or none.
ALTER TABLE message_alias
    ADD COLUMN IF NOT EXISTS part smallint,
    ADD COLUMN IF NOT EXISTS parts smallint,
    ADD CONSTRAINT message_alias_part CHECK ((part IS NULL) = (parts IS NULL) AND part BETWEEN 1 AND parts AND parts <= 255) NOT VALID; -- older rows have none

INSERT INTO schema_version (version) VALUES (6) ON CONFLICT DO NOTHING;
