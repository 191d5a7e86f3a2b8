-- For metrics: actions by state, runs that pipelines began, what caps held back, results that came too late, and for
-- how many ms the oldest due action or intent has waited. Reads indexes that hold only those, so that waiting actions
-- cost nothing. The millions that may wait for a push are passed over in the index.
CREATE OR REPLACE FUNCTION actions_counts() RETURNS TABLE (kind text, name text, n int8, repeated int8)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
    SELECT 'action', 'held', COALESCE(sum(h.n), 0)::int8, 0::int8
    FROM action_lane l
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM action a WHERE a.lane = l.lane AND a.status = 'held' AND a.held_by < 'deal:'
        UNION ALL
        SELECT count(*) FROM action a
        WHERE a.lane = l.lane AND a.status = 'held' AND a.held_by >= 'deal;' AND a.held_by < 'push:'
        UNION ALL
        SELECT count(*) FROM action a WHERE a.lane = l.lane AND a.status = 'held' AND a.held_by >= 'push;') h
    UNION ALL
    SELECT 'action', 'running', count(*), 0 FROM action a WHERE a.status = 'running'
    UNION ALL
    SELECT 'action', 'dead', count(*), 0 FROM action a WHERE a.status = 'dead'
    UNION ALL
    SELECT 'pipeline', c.name, c.started, c.repeated FROM pipeline_count c
    UNION ALL
    SELECT k.kind, c.name, k.n, 0
    FROM pipeline_count c
    CROSS JOIN LATERAL (VALUES ('refused', c.refused), ('dropped', c.dropped), ('deferred', c.deferred),
                               ('capped', c.capped)) AS k (kind, n)
    WHERE k.n > 0
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
