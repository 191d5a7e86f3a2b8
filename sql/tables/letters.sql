-- What could not be applied. No variables; search_path = the schema.

CREATE TABLE dead_letter (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer, -- position in the record; -1: the whole record
    lane integer NOT NULL,
    reason text COLLATE "C" NOT NULL,
    detail text COLLATE "C",
    payload bytea,
    traceparent text COLLATE "C",
    dead_at timestamptz NOT NULL DEFAULT now(),
    -- The time that the receipt has where its text names none, so that a redrive gives it the same: that of its record
    -- in Kafka.
    at timestamptz,
    -- Indexes of the receipts, for a letter that is of many receipts of a record, refused for one reason. Their order
    -- is that of the array that is its payload. NULL: it is of one.
    indexes integer[],
    PRIMARY KEY (topic, partition, "offset", index)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
-- By their age, for dead_letters.retention.
CREATE INDEX dead_letter_age ON dead_letter USING brin (dead_at) WITH (pages_per_range = 32);
