-- What dead letters keep of a receipt beside its text. No variables; search_path = the schema.

-- The time that a receipt has where its text names none, so that a redrive gives it the same: that of its record in Kafka. NULL: the letter is of an
-- older version.
ALTER TABLE dead_letter ADD COLUMN IF NOT EXISTS at timestamptz;

INSERT INTO schema_version (version) VALUES (7) ON CONFLICT DO NOTHING;
