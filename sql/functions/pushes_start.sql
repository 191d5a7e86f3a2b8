-- Part of actions_split(): the first subject that arrives starts its push, and fixes when it is dealt and decided.
-- ids: of actions at splits; now_at: the time of the round. In the order of names: two rounds never deadlock.
CREATE OR REPLACE FUNCTION pushes_start(ids int8[], now_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fresh text;
BEGIN
    FOR fresh IN
        SELECT DISTINCT p.name
        FROM unnest(ids) AS d (id)
        JOIN action a ON a.id = d.id
        JOIN pipeline_step s ON s.pipeline_id = a.pipeline_id AND s.step = a.step
        JOIN push p ON p.name = s.target AND p.started_at IS NULL
        ORDER BY p.name
    LOOP
        UPDATE push p
        SET started_at = now_at,
            deal_at = now_at + (p.rule ->> 'gather_ms')::int8 * interval '1 millisecond',
            dealt_at = CASE WHEN NOT p.rule ? 'gather_ms' THEN now_at END,
            decide_at = CASE WHEN NOT p.rule ? 'gather_ms'
                             THEN now_at + (p.rule ->> 'after_ms')::int8 * interval '1 millisecond' END
        WHERE p.name = fresh AND p.started_at IS NULL;
    END LOOP;
END
$$;
