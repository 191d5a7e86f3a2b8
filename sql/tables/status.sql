-- The status of the daemons, for receiptd serve: they may run elsewhere. No variables; search_path = the schema.

-- The document of /statusz of each `receiptd run`, which writes it every few seconds. It holds no secret. json and
-- not jsonb: members keep their order, and no statement searches in it.
CREATE TABLE instance_status (
    name text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL,
    document json NOT NULL,
    partitions integer NOT NULL, -- that it has now
    all_partitions integer NOT NULL, -- of its topics, whoever has them; 0: not known
    behind_ms bigint NOT NULL -- at most, over those that it has
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
