-- Transitions of messages for the status stream (`stream`): a lane appends one row of arrays for each transaction, and
-- the publisher takes it away. No variables; search_path = the schema.

-- The element at n of each array belongs to the message at n of ids. An array with one element holds for all messages,
-- and NULL means that no message has one. The id is taken while the messages are locked, and only the end of the
-- transaction frees them. So the ids of one message rise in the order of its transitions, and a later row is never
-- visible before an earlier one.
CREATE TABLE stream_event (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    ids text[] NOT NULL,
    orgs text[], campaigns text[], old smallint[], new smallint[],
    flags integer[], -- now
    gained integer[],
    times timestamptz[], -- event time of the status, or of the receipt that brought the flag
    gateways text[], reasons text[],
    columns text[], -- of the inbox as `stream.columns` asks, each a JSON object
    traces text[], -- a traceparent of each
    kind text NOT NULL DEFAULT 'change' -- change, row (backfill), gone (tombstone: ids alone)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Short-lived: to compress them costs more than it saves.
ALTER TABLE stream_event ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN orgs SET STORAGE EXTERNAL,
    ALTER COLUMN campaigns SET STORAGE EXTERNAL, ALTER COLUMN old SET STORAGE EXTERNAL,
    ALTER COLUMN new SET STORAGE EXTERNAL, ALTER COLUMN flags SET STORAGE EXTERNAL,
    ALTER COLUMN gained SET STORAGE EXTERNAL, ALTER COLUMN times SET STORAGE EXTERNAL,
    ALTER COLUMN gateways SET STORAGE EXTERNAL, ALTER COLUMN reasons SET STORAGE EXTERNAL,
    ALTER COLUMN columns SET STORAGE EXTERNAL, ALTER COLUMN traces SET STORAGE EXTERNAL;
