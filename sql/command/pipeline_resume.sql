-- $1 text name. Returns known (0: there is no such pipeline).
WITH known AS (SELECT DISTINCT p.name FROM pipeline p WHERE p.name = $1::text),
     resumed AS (DELETE FROM pipeline_pause WHERE name = $1::text)
SELECT count(*) AS known FROM known;
