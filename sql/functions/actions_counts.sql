-- For metrics: actions by state, runs that pipelines began, results that came too late, and for how many ms the oldest
-- due action or intent has waited. Reads indexes that hold only those, so that waiting actions cost nothing.
CREATE OR REPLACE FUNCTION actions_counts() RETURNS TABLE (kind text, name text, n int8, repeated int8)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
    SELECT 'action', 'held', count(*), 0::int8 FROM action a WHERE a.status = 'held'
    UNION ALL
    SELECT 'action', 'running', count(*), 0 FROM action a WHERE a.status = 'running'
    UNION ALL
    SELECT 'action', 'dead', count(*), 0 FROM action a WHERE a.status = 'dead'
    UNION ALL
    SELECT 'pipeline', c.name, c.started, c.repeated FROM pipeline_count c
    UNION ALL
    SELECT 'overlap', '', count(*), 0 FROM action_overlap
    UNION ALL
    SELECT 'due', '', GREATEST(COALESCE(extract(epoch FROM clock_timestamp() - min(d.at)) * 1000, 0), 0)::int8, 0
    FROM ((SELECT i.begun_at AS at FROM run_intent i ORDER BY i.org_id, i.id LIMIT 1)
          UNION ALL
          SELECT (SELECT a.perform_at FROM action a WHERE a.lane = l.lane AND a.status = 'pending'
                  ORDER BY a.perform_at LIMIT 1)
          FROM action_lane l) d
$$;
