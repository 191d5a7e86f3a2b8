-- This database may follow the server that Kafka remembers: $1 numeric system identifier, $2 int4 timeline.
INSERT INTO database_accepted (system_identifier, timeline) VALUES ($1::numeric, $2::int4) ON CONFLICT DO NOTHING;
