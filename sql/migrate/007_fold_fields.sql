-- Version 7: folds of transitions by more fields (prev_status, flags, columns of the inbox), links to the traces of their
-- receipts, and how much an appended row holds.
ALTER TABLE fold_rule
    ADD COLUMN by_prev_status boolean NOT NULL DEFAULT false,
    ADD COLUMN by_flags boolean NOT NULL DEFAULT false,
    ADD COLUMN key_columns text[] NOT NULL DEFAULT '{}', -- columns of the inbox in the group key
    ADD COLUMN columns text[] NOT NULL DEFAULT '{}'; -- all that the rule looks at

-- Of transitions, beside n: columns as a JSON object, only where a rule looks at any; a traceparent of each.
ALTER TABLE fold_event
    ADD COLUMN columns text[],
    ADD COLUMN links text[],
    ADD COLUMN size integer NOT NULL DEFAULT 1000; -- entries; what was appended before is not counted
ALTER TABLE fold_event ALTER COLUMN columns SET STORAGE EXTERNAL;

INSERT INTO schema_version (version) VALUES (7);
