-- For metrics: how many actions there are in each state that is not over, what waits longest, and what pipelines have begun.
SELECT 'action' AS kind, a.status AS name, count(*) AS n, 0::int8 AS repeated
FROM action a WHERE a.status IN ('held', 'running', 'dead') GROUP BY a.status
UNION ALL
SELECT 'pipeline', c.name, c.started, c.repeated FROM pipeline_count c
UNION ALL
SELECT 'overlap', '', count(*), 0 FROM action_overlap;
