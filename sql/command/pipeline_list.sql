-- Pipelines by name: whether they are active and paused, how many wordings they have, how many runs began.
SELECT p.name, bool_or(p.active) AS active, bool_or(k.name IS NOT NULL) AS paused, count(*) AS wordings,
       COALESCE(max(c.started), 0) AS started, COALESCE(max(c.repeated), 0) AS repeated
FROM pipeline p
LEFT JOIN pipeline_pause k ON k.name = p.name
LEFT JOIN pipeline_count c ON c.name = p.name
GROUP BY p.name
ORDER BY p.name;
