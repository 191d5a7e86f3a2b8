-- How many more runs organisations may begin. Those that have a cap are locked to the end of the transaction, in the
-- order of their names. So whoever begins runs sees all that others have begun, and transactions do not deadlock.
--
-- Returns a row for each of orgs that has a cap: the cap, its open runs (as far as the cap) and the room. While runs
-- wait, there is no room for new ones: these would overtake them.
CREATE OR REPLACE FUNCTION actions_room(orgs text[]) RETURNS TABLE (org text, cap int4, open int4, room int4)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    capped text[] := ARRAY(SELECT DISTINCT w.org COLLATE "C" FROM unnest(orgs) AS w (org)
                           WHERE actions_cap(w.org) IS NOT NULL ORDER BY 1);
BEGIN
    INSERT INTO org_open (org_id) SELECT w.id FROM unnest(capped) AS w (id) ORDER BY w.id COLLATE "C"
    ON CONFLICT DO NOTHING;
    PERFORM FROM org_open l WHERE l.org_id = ANY (capped) ORDER BY l.org_id FOR UPDATE;
    -- A statement of its own, whose snapshot comes after the locks.
    RETURN QUERY
    SELECT c.id, c.cap, c.open, CASE WHEN c.waits THEN 0 ELSE GREATEST(c.cap - c.open, 0) END
    FROM (SELECT w.id, k.cap,
                 (SELECT count(*)::int4
                  FROM (SELECT FROM run r WHERE r.org_id = w.id AND r.status = 'active' LIMIT k.cap) n) AS open,
                 EXISTS (SELECT FROM run r WHERE r.org_id = w.id AND r.status = 'waiting') AS waits
          FROM unnest(capped) AS w (id) CROSS JOIN LATERAL (SELECT actions_cap(w.id) AS cap) k
          WHERE k.cap IS NOT NULL) c;
END
$$;
