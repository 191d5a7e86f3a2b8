-- Last part of actions_claim(): makes actions running and returns what their calls need.
--
-- ids: not empty, in the order in which their tokens grow; charged_at: when each was charged. me: the instance.
-- lease_ms: after that time any instance may claim them again. now_at: the time of the round. Returns, by action:
-- token (of this claim), attempt (1: the first), the step's pipeline, stage, op, target and the record's key. Further
-- columns: age_ms (since it was set up), wait_ms (its last back-off), late_ms (since it was due) and body (JSON).
CREATE OR REPLACE FUNCTION actions_take(ids int8[], charged_at timestamptz[],
                                        me text, lease_ms int8, now_at timestamptz)
RETURNS TABLE (action_id int8, token int8, attempt int4, run_id int8,
               pipeline text, stage text, op text, target text, key text,
               org_id text, age_ms int8, wait_ms int8, late_ms int8, body text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH taken AS (
        UPDATE action a
        SET status = 'running', token = l.token + c.n, attempt = a.attempt + 1, instance = me, settle = NULL,
            held_by = NULL, lease_until = clock_timestamp() + lease_ms * interval '1 millisecond', started_at = c.at
        FROM unnest(ids, charged_at) WITH ORDINALITY AS c (id, at, n), action_lane l
        WHERE a.id = c.id AND a.id = ANY (ids) AND l.lane = a.lane AND a.status = 'pending'
        RETURNING a.*
    )
    SELECT t.id, t.token, t.attempt, t.run_id, p.name, s.stage, s.op, s.target,
           CASE s.key_field WHEN 'org_id' THEN t.org_id WHEN 'campaign_id' THEN u.campaign_id
                            WHEN 'message_id' THEN t.message_id ELSE u.subject END,
           t.org_id, (extract(epoch FROM actions_take.now_at - t.created_at) * 1000)::int8, t.wait_ms,
           GREATEST((extract(epoch FROM actions_take.now_at - t.perform_at) * 1000)::int8, 0),
           jsonb_strip_nulls(jsonb_build_object(
               'type', 'receiptd.action', 'action_id', t.id, 'run_id', t.run_id, 'pipeline', p.name, 'stage', s.stage,
               'org_id', t.org_id, 'campaign_id', u.campaign_id, 'message_id', t.message_id, 'subject', u.subject,
               'status', k.name, 'data', u.data))::text
    FROM taken t
    JOIN run u ON u.id = t.run_id
    JOIN pipeline p ON p.id = t.pipeline_id
    JOIN pipeline_step s ON s.pipeline_id = t.pipeline_id AND s.step = t.step
    LEFT JOIN LATERAL (SELECT i.status FROM message_inbox i WHERE i.message_id = t.message_id LIMIT 1) m ON true
    LEFT JOIN message_status_priority k ON k.code = m.status;
    UPDATE action_lane l SET token = l.token + cardinality(ids)
    WHERE l.lane = ANY (ARRAY(SELECT DISTINCT a.lane FROM action a WHERE a.id = ANY (ids)));
END
$$;
