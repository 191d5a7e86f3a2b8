-- Freezes a partition whose messages change no longer: later vacuums skip its pages, also those that PostgreSQL makes
-- against wraparound. Variables: part_schema, part.
VACUUM (FREEZE, ANALYZE) :"part_schema".:"part"
