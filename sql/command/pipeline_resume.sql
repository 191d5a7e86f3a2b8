-- $1 text name, $2 bool: the configuration names it, whether or not an instance has stored it. Returns known (0: there
-- is no such pipeline).
WITH known AS (SELECT p.name FROM pipeline p WHERE p.name = $1::text UNION SELECT $1::text WHERE $2::bool),
     resumed AS (DELETE FROM pipeline_pause WHERE name = $1::text)
SELECT count(*) AS known FROM known;
