-- Part of erase_messages(): takes these ids out of what folds have collected and not yet handed over
-- (erase_collected()), and deletes the groups whose key holds one. Numbers of new groups begin above those, as in
-- fold/forget.sql. Returns how many rows changed.
-- A row of transitions gets another id: a publisher that has it in its memory finds it gone, and reads again
-- (fold_check_gone()). Its entries keep their place in the order (first_rows, last_rows).
CREATE OR REPLACE FUNCTION erase_folds(ids text[]) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    numbers numeric[] := ARRAY(SELECT i.id::numeric FROM unnest(ids) i (id)
                               WHERE i.id ~ '^-?[0-9]{1,64}(\.[0-9]{1,64})?$');
    n int8;
    sum int8 := 0;
BEGIN
    WITH erased AS (
        SELECT e.id,
               CASE WHEN e.columns IS NOT NULL THEN
                   ARRAY(SELECT erase_object(w.c::jsonb, ids, numbers)::text
                         FROM unnest(e.columns) WITH ORDINALITY AS w (c, n) ORDER BY w.n) END AS columns,
               CASE WHEN e.keys IS NOT NULL THEN
                   ARRAY(SELECT erase_object(w.c::jsonb, ids, numbers)::text
                         FROM unnest(e.keys) WITH ORDINALITY AS w (c, n) ORDER BY w.n) END AS keys,
               CASE WHEN e.parts IS NOT NULL THEN
                   ARRAY(SELECT jsonb_set(w.part::jsonb, '{v}',
                                          erase_collected(w.part::jsonb -> 'v', r.kinds, ids, numbers), false)::text
                         FROM unnest(e.rules, e.parts) WITH ORDINALITY AS w (rule, part, n)
                         LEFT JOIN fold_rule r ON r.rule = w.rule ORDER BY w.n) END AS parts
        FROM fold_event e FOR UPDATE
    )
    UPDATE fold_event e
    SET columns = d.columns, keys = d.keys, parts = d.parts,
        first_rows = CASE WHEN e.rules IS NULL
                          THEN COALESCE(e.first_rows, array_fill(e.id, ARRAY[cardinality(e.n)])) END,
        last_rows = CASE WHEN e.rules IS NULL
                         THEN COALESCE(e.last_rows, array_fill(e.id, ARRAY[cardinality(e.n)])) END,
        id = CASE WHEN e.rules IS NULL THEN nextval(pg_get_serial_sequence('fold_event', 'id')) ELSE e.id END
    FROM erased d
    WHERE d.id = e.id
      AND (d.columns::jsonb[], d.keys::jsonb[], d.parts::jsonb[])
          IS DISTINCT FROM (e.columns::jsonb[], e.keys::jsonb[], e.parts::jsonb[]);
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    WITH gone AS (
        DELETE FROM fold_group g WHERE erase_object(g.key::jsonb, ids, numbers) <> g.key::jsonb
        RETURNING g.lane, g.number
    ),
    floor AS (
        UPDATE fold_lane l SET number_floor = GREATEST(l.number_floor, m.number)
        FROM (SELECT g.lane, max(g.number) AS number FROM gone g GROUP BY g.lane) m
        WHERE l.lane = m.lane
    )
    SELECT count(*) INTO n FROM gone;
    sum := sum + n;
    UPDATE fold_group g
    SET collected = jsonb_set(g.collected, '{v}', erase_collected(g.collected -> 'v', r.kinds, ids, numbers))
    FROM fold_group s LEFT JOIN fold_rule r ON r.rule = s.rule
    WHERE s.rule = g.rule AND s.key = g.key AND g.collected ? 'v'
      AND erase_collected(g.collected -> 'v', r.kinds, ids, numbers) <> g.collected -> 'v';
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    WITH erased AS (
        SELECT o.lane, o.seq, erase_publication(o.payload, o.rule, ids, numbers) AS payload,
               erase_scalar(to_jsonb(o.message_key), ids, numbers)
               OR erase_scalar(action_json(o.message_key), ids, numbers) AS named
        FROM fold_outbox o
    )
    UPDATE fold_outbox o
    SET payload = d.payload, message_key = CASE WHEN d.named THEN NULL ELSE o.message_key END
    FROM erased d WHERE d.lane = o.lane AND d.seq = o.seq AND (d.named OR d.payload <> o.payload);
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    UPDATE fold_call c SET payload = erase_publication(c.payload, c.rule, ids, numbers), error = NULL
    WHERE erase_publication(c.payload, c.rule, ids, numbers) <> c.payload;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN sum + n;
END
$$;
