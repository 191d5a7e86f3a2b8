-- When maintenance ended last. No variables; search_path = the schema.

-- Written by `receiptd maintain` when it has walked all tables, so that one that runs every hour walks them once a day.
CREATE TABLE maintained (
    task text PRIMARY KEY, -- 'walk'
    ended_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO schema_version (version) VALUES (4) ON CONFLICT DO NOTHING;
