-- Takes these ids out of what a rule of folds has collected, name -> value. kinds: name -> kind, of the rule; NULL: the
-- rule has gone. In a set an id becomes null. One that was kept alone goes, since later values are compared with it.
-- Counts and sums stay.
CREATE OR REPLACE FUNCTION erase_collected(collected jsonb, kinds jsonb, ids text[], numbers numeric[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT COALESCE(
        jsonb_object_agg(m.key, CASE WHEN jsonb_typeof(m.value) = 'array' THEN (
            SELECT COALESCE(jsonb_agg(CASE WHEN erase_scalar(e.value, ids, numbers) THEN 'null' ELSE e.value END
                                      ORDER BY e.n), '[]')
            FROM jsonb_array_elements(m.value) WITH ORDINALITY AS e (value, n)) ELSE m.value END)
        FILTER (WHERE COALESCE(kinds ->> m.key, '') IN ('sum', 'count') OR NOT erase_scalar(m.value, ids, numbers)),
        '{}')
    FROM jsonb_each(collected) m
$$;
