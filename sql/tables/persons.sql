-- Persons who are to get nothing more, and why (docs/suppression.md). Rows are appended by lanes, in the transaction of
-- the transition, and by `receiptd suppressions`. No key is unique, so writers never wait for each other: the same
-- message and class twice does no harm. A removal and an erasure write their own columns. No variables; search_path =
-- the schema.

CREATE TABLE suppression (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL, -- suppression_key(): look-ups go by it, and it stays after an erasure
    org_id text COLLATE "C" NOT NULL,
    person text COLLATE "C", -- NULL: erased
    class text COLLATE "C" NOT NULL, -- the status or flag, or a word of who added it
    soft_count integer CHECK (soft_count > 0), -- suppresses only with so many … (NULL: alone)
    soft_within interval, -- … in this time, as the configuration said when it came
    since timestamptz NOT NULL, -- time of the event
    message_id text,
    made_by text COLLATE "C" NOT NULL DEFAULT 'receipt',
    made_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz,
    removed_by text COLLATE "C",
    removed_because text COLLATE "C"
);
CREATE INDEX suppression_key ON suppression (key);
CREATE INDEX suppression_org ON suppression (org_id, id);
-- For erasures; hashed, since values have any length.
CREATE INDEX suppression_person ON suppression USING hash (person);
CREATE INDEX suppression_message ON suppression USING hash (message_id);
