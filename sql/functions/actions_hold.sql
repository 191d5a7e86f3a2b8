-- Part of actions_claim(): holds due actions whose organisation or pipeline is paused, or whose endpoint's breaker is
-- open. They are out of the way until actions_release_held() makes them pending again. due: ids; open_endpoints:
-- those whose breaker is open. Returns the ids that are not held.
CREATE OR REPLACE FUNCTION actions_hold(due int8[], open_endpoints text[]) RETURNS int8[] LANGUAGE plpgsql AS $$
BEGIN
    IF open_endpoints = '{}'
       AND NOT EXISTS (SELECT FROM pipeline_pause)
       AND NOT EXISTS (SELECT FROM org_limit o WHERE o.paused) THEN
        RETURN due;
    END IF;
    WITH held AS (
        SELECT a.id, CASE WHEN o.paused THEN 'org:' || a.org_id
                          WHEN k.name IS NOT NULL THEN 'pipeline:' || k.name
                          WHEN s.op = 'webhook' AND s.target = ANY (open_endpoints)
                          THEN 'endpoint:' || s.target END AS reason
        FROM unnest(due) AS d (id)
        CROSS JOIN LATERAL (SELECT c.* FROM action c WHERE c.id = d.id OFFSET 0) a
        JOIN pipeline p ON p.id = a.pipeline_id
        JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
        LEFT JOIN pipeline_pause k ON k.name = p.name
        LEFT JOIN org_limit o ON o.org_id = a.org_id AND o.paused
    ),
    put AS (
        UPDATE action a SET status = 'held', held_by = held.reason FROM held
        WHERE a.id = held.id AND a.id = ANY (due) AND held.reason IS NOT NULL AND a.status = 'pending'
        RETURNING a.id
    )
    SELECT ARRAY(SELECT d FROM unnest(due) d WHERE d NOT IN (SELECT put.id FROM put)) INTO due;
    RETURN due;
END
$$;
