-- Moves the oldest deltas of groups into message_group, and what that changes into counter_delta: only ids above
-- `above`. A row holds many changes; it takes rows until they have `most` changes. Returns rows (the changes that it
-- moved; `most` or more: there may be others) and last. One at a time: of two the second does nothing. The lock is
-- taken in an earlier statement than the snapshot, so what the last one wrote is seen. The last statement does the
-- rest: a reader sees a delta, or what became of it.
CREATE OR REPLACE FUNCTION groups_fold(most int4, above int8)
RETURNS TABLE (rows int8, last int8) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    picked int8[] := '{}';
    delta_row record;
    changes int8 := 0;
BEGIN
    -- Without work nothing is locked: a lock is a write.
    IF EXISTS (SELECT FROM group_delta d WHERE d.id > above) THEN
        PERFORM FROM turn t WHERE t.task = 'groups' FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 0::int8, 0::int8;
        RETURN;
    END IF;
    FOR delta_row IN SELECT d.id, cardinality(d.key) AS n FROM group_delta d WHERE d.id > above ORDER BY d.id LOOP
        picked := picked || delta_row.id;
        changes := changes + delta_row.n;
        EXIT WHEN changes >= most;
    END LOOP;
    RETURN QUERY
    WITH taken AS (
        DELETE FROM group_delta d WHERE d.id = ANY (picked) RETURNING d.id
    ),
    merged AS MATERIALIZED (
        SELECT m.* FROM groups_merged(picked) m
    ),
    stored AS (
        INSERT INTO message_group AS g (campaign_id, kind, key, status, flags, codes, counts)
        SELECT m.campaign_id, m.kind, m.key, m.status, m.flags, m.codes, m.counts FROM merged m ORDER BY 1, 2, 3
        ON CONFLICT (campaign_id, kind, key) DO UPDATE
        SET status = excluded.status, flags = excluded.flags, codes = excluded.codes, counts = excluded.counts
    ),
    counted AS (
        INSERT INTO counter_delta (kind, campaign_id, status, messages, events)
        SELECT s.kind, array_agg(s.campaign_id), array_agg(s.code), array_agg(s.n), array_agg(0::int8)
        FROM (
            SELECT c.kind, c.campaign_id, d.code, sum(c.n * d.delta)::int8 AS n
            FROM (SELECT m.kind, m.campaign_id, m.was, m.had, m.status, m.flags, count(*) AS n FROM merged m
                  WHERE (m.was, m.had) IS DISTINCT FROM (m.status, m.flags) GROUP BY 1, 2, 3, 4, 5, 6) c
            CROSS JOIN LATERAL group_steps(c.was, c.had, c.status, c.flags) d
            GROUP BY 1, 2, 3 HAVING sum(c.n * d.delta) <> 0
        ) s
        GROUP BY s.kind
    )
    SELECT changes, COALESCE(max(t.id), 0) FROM taken t;
END
$$;
