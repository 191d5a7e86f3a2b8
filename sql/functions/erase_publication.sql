-- A publication of a fold that waits (fold/claim.sql), without these ids: in the group's key an id becomes null, what
-- was collected is as erase_collected() leaves it. The text stays as it is where it names none.
CREATE OR REPLACE FUNCTION erase_publication(payload text, of_rule text, ids text[], numbers numeric[]) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN e.erased <> d.said THEN e.erased::text ELSE payload END
    FROM (SELECT payload::jsonb AS said) d,
         LATERAL (SELECT (SELECT r.kinds FROM fold_rule r WHERE r.rule = of_rule) AS kinds) r,
         LATERAL (SELECT jsonb_set(
             jsonb_set(d.said, '{group}', erase_object(COALESCE(d.said -> 'group', '{}'), ids, numbers), false),
             '{collected}', erase_collected(COALESCE(d.said -> 'collected', '{}'), r.kinds, ids, numbers), false)
             AS erased) e
$$;
