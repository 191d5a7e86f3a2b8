-- Part of erase_messages(): takes these ids out of what folds have collected and not yet handed over, where they become null, and deletes the
-- groups whose key holds one. Numbers of new groups begin above those, as in fold/forget.sql. Returns how many rows changed.
CREATE OR REPLACE FUNCTION erase_folds(ids text[]) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    needles text[] := ARRAY(SELECT to_json(i.id)::text FROM unnest(ids) i (id));
    n int8;
    sum int8 := 0;
BEGIN
    UPDATE fold_event e
    SET columns = CASE WHEN e.columns IS NOT NULL
                       THEN ARRAY(SELECT erase_text(c, needles) FROM unnest(e.columns) WITH ORDINALITY AS w (c, n) ORDER BY w.n) END,
        keys = CASE WHEN e.keys IS NOT NULL
                    THEN ARRAY(SELECT erase_text(c, needles) FROM unnest(e.keys) WITH ORDINALITY AS w (c, n) ORDER BY w.n) END,
        parts = CASE WHEN e.parts IS NOT NULL
                     THEN ARRAY(SELECT erase_text(c, needles) FROM unnest(e.parts) WITH ORDINALITY AS w (c, n) ORDER BY w.n) END
    WHERE EXISTS (SELECT FROM unnest(e.columns || e.keys || e.parts) c WHERE erase_text(c, needles) <> c);
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    WITH gone AS (
        DELETE FROM fold_group g WHERE erase_text(g.key, needles) <> g.key RETURNING g.lane, g.number
    ),
    floor AS (
        UPDATE fold_lane l SET number_floor = GREATEST(l.number_floor, m.number)
        FROM (SELECT g.lane, max(g.number) AS number FROM gone g GROUP BY g.lane) m
        WHERE l.lane = m.lane
    )
    SELECT count(*) INTO n FROM gone;
    sum := sum + n;
    UPDATE fold_group g SET collected = erase_text(g.collected::text, needles)::jsonb
    WHERE erase_text(g.collected::text, needles) <> g.collected::text;
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    UPDATE fold_outbox o SET payload = erase_text(o.payload, needles),
                             message_key = CASE WHEN o.message_key = ANY (ids) THEN NULL ELSE erase_text(o.message_key, needles) END
    WHERE o.message_key = ANY (ids) OR erase_text(o.payload, needles) <> o.payload;
    GET DIAGNOSTICS n = ROW_COUNT;
    sum := sum + n;
    UPDATE fold_call c SET payload = erase_text(c.payload, needles), error = NULL WHERE erase_text(c.payload, needles) <> c.payload;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN sum + n;
END
$$;
