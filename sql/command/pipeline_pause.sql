-- $1 text name, $2 bool: the configuration names it, whether or not an instance has stored it. Returns known (0: there
-- is no such pipeline).
WITH known AS (SELECT p.name FROM pipeline p WHERE p.name = $1::text UNION SELECT $1::text WHERE $2::bool),
     paused AS (INSERT INTO pipeline_pause (name) SELECT k.name FROM known k ON CONFLICT DO NOTHING)
SELECT count(*) AS known FROM known;
