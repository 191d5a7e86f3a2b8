-- A publication of a fold that waits (fold/claim.sql), without these ids: in the group's key an id becomes null, what
-- was collected is as erase_collected() leaves it. The text stays as it is where it names none.
CREATE OR REPLACE FUNCTION erase_publication(payload text, of_rule text, ids text[], numbers numeric[]) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN e.erased <> payload::jsonb THEN e.erased::text ELSE payload END
    FROM (SELECT payload::jsonb
              || CASE WHEN payload::jsonb ? 'group' THEN jsonb_build_object('group', erase_object(payload::jsonb -> 'group', ids, numbers)) ELSE '{}' END
              || CASE WHEN payload::jsonb ? 'collected'
                      THEN jsonb_build_object('collected', erase_collected(payload::jsonb -> 'collected', (SELECT r.kinds FROM fold_rule r WHERE r.rule = of_rule),
                                                                           ids, numbers)) ELSE '{}' END AS erased) e
$$;
