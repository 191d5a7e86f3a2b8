INSERT INTO pipeline_pause (name) SELECT DISTINCT p.name FROM pipeline p WHERE p.name = $1::text ON CONFLICT DO NOTHING;
