-- The version of the schema. A migration adds a row with its number in the transaction that makes what it needs, so
-- the largest one says which tables are here. Version 8 is the baseline: all tables as sql/tables makes them; no
-- earlier schema is brought forward. No variables; search_path = the schema.

CREATE TABLE schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO schema_version (version) VALUES (8);

-- The functions and views that are in the schema, each with the hash of its file: migrate replaces those that differ.
CREATE TABLE schema_part (
    name text COLLATE "C" PRIMARY KEY, -- of the file: functions/fence
    hash text COLLATE "C" NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
