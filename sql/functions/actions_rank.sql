-- Part of actions_claim(): picks actions that may run, the first action of each subject of which none is running.
-- Where targets lack the capacity for all, organisations take turns: the n-th action of each comes n / weight turns
-- after its first. A lot, drawn by weight, says which organisation is first, so that none is last each time.
--
-- due: ids. targets, capacities: see actions_claim(). claim_limit: how many at most. ids, orgs, tags: the actions by
-- organisation and rank; tags: the rank among all, smallest first. '{}' if there is none.
CREATE OR REPLACE FUNCTION actions_rank(due int8[], targets text[], capacities int4[], claim_limit int4,
                                        OUT ids int8[], OUT orgs text[], OUT tags float8[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT COALESCE(array_agg(f.id ORDER BY f.org_id, f.tag, f.id), '{}'),
           COALESCE(array_agg(f.org_id ORDER BY f.org_id, f.tag, f.id), '{}'),
           COALESCE(array_agg(f.tag ORDER BY f.org_id, f.tag, f.id), '{}')
    INTO ids, orgs, tags
    FROM (
        SELECT y.id, y.org_id, y.tag
        FROM (
            SELECT w.*, row_number() OVER (PARTITION BY w.target ORDER BY w.tag, w.id) AS nth
            FROM (
                SELECT x.*,
                       (row_number() OVER g - 1 - ln(1 - first_value(random()) OVER g)) / COALESCE(o.weight, 1) AS tag
                FROM (
                    SELECT DISTINCT ON (a.subject_hash) a.id, a.org_id, a.perform_at, s.op || ':' || s.target AS target
                    FROM unnest(due) AS d (id)
                    CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
                    JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
                    WHERE a.status = 'pending'
                      -- A range in order is looked up by subject under all estimates of how many actions run.
                      AND (SELECT b.id FROM action b
                           WHERE b.subject_hash >= a.subject_hash AND b.subject_hash <= a.subject_hash
                             AND b.status = 'running'
                           ORDER BY b.subject_hash LIMIT 1) IS NULL
                    ORDER BY a.subject_hash, a.perform_at, a.id
                ) x
                LEFT JOIN org_limit o ON o.org_id = x.org_id
                WINDOW g AS (PARTITION BY x.target, x.org_id ORDER BY x.perform_at, x.id)
            ) w
        ) y
        LEFT JOIN unnest(targets, capacities) AS c (target, capacity) ON c.target = y.target
        WHERE c.capacity IS NULL OR y.nth <= c.capacity
        ORDER BY y.tag, y.id
        LIMIT claim_limit
    ) f;
END
$$;
