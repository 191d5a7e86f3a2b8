-- What becomes of runs that are about to begin, by the caps of their organisations.
--
-- orgs, keys: of each run, in the order in which they come; keys: of once_per, NULL: none. whole: with `refuse` all of
-- them begin, or none. fates: one for each run, or NULL if no organisation has a cap. b begins, w waits, r is refused,
-- d is dropped, o does not begin because of once_per. over: the organisation whose cap refuses the whole, as JSON.
CREATE OR REPLACE FUNCTION actions_fates(orgs text[], keys text[], whole boolean, OUT fates "char"[], OUT over text)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    names text[];
    caps int4[];
    opens int4[];
    rooms int4[];
    mode text := (SELECT s.beyond_open_runs FROM action_setting s);
BEGIN
    SELECT array_agg(c.org), array_agg(c.cap), array_agg(c.open), array_agg(c.room) INTO names, caps, opens, rooms
    FROM actions_room(orgs) c;
    IF names IS NULL THEN
        RETURN;
    END IF;
    WITH w AS (
        SELECT u.n, u.org, u.key IS NOT NULL AND (row_number() OVER (PARTITION BY u.key ORDER BY u.n) > 1
                   OR EXISTS (SELECT FROM run r WHERE r.once_key = u.key)) AS known
        FROM unnest(orgs, keys) WITH ORDINALITY AS u (org, key, n)
    ),
    p AS MATERIALIZED (
        SELECT w.n, w.known, c.org, c.cap, c.open,
               NOT w.known AND c.org IS NOT NULL
                   AND row_number() OVER (PARTITION BY w.org, w.known ORDER BY w.n) > c.room AS beyond
        FROM w LEFT JOIN unnest(names, caps, opens, rooms) AS c (org, cap, open, room) ON c.org = w.org
    ),
    -- The first organisation that has no room for all of its runs refuses a whole.
    o AS MATERIALIZED (
        SELECT json_build_object('org_id', p.org, 'cap', p.cap, 'open', p.open, 'beyond', count(*)) AS says
        FROM p WHERE p.beyond AND whole AND mode = 'refuse'
        GROUP BY p.org, p.cap, p.open ORDER BY p.org LIMIT 1
    )
    SELECT array_agg(CASE WHEN p.known THEN 'o' WHEN (SELECT true FROM o) THEN 'r' WHEN NOT p.beyond THEN 'b'
                          WHEN mode = 'defer' THEN 'w' WHEN mode = 'drop' THEN 'd' ELSE 'r' END::"char" ORDER BY p.n),
           (SELECT o.says::text FROM o)
    INTO fates, over
    FROM p;
END
$$;
