-- $1 text name. Returns known (0: there is no such pipeline).
WITH known AS (SELECT DISTINCT p.name FROM pipeline p WHERE p.name = $1::text),
     paused AS (INSERT INTO pipeline_pause (name) SELECT k.name FROM known k ON CONFLICT DO NOTHING)
SELECT count(*) AS known FROM known;
