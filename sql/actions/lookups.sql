-- Look-ups of pipelines: of the wordings that start runs, and of the one with $1 int4 id (0: none).
SELECT p.id, p.name, p.lookup_as, p.lookup_sql
FROM pipeline p
WHERE p.lookup_sql IS NOT NULL AND (p.active OR p.id = $1::int4);
