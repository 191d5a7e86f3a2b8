-- Part of actions_claim(): charges the limits, first that of all organisations together, then each organisation's.
-- They come in the order of their names, so that two rounds never wait for each other. An organisation gives back
-- attempts beyond the limit of all. The limit of all gets back attempts that no organisation used. ready, orgs, tags:
-- as actions_rank() gives them. The limits: as actions_grant() takes them. ids: the actions that may run, by rank;
-- charged_at: when each was charged. '{}' if there is none.
CREATE OR REPLACE FUNCTION actions_charge(ready int8[], orgs text[], tags float8[], org_interval int8, org_burst int8,
                                          org_concurrency int4, all_interval int8, all_burst int8, all_concurrency int4,
                                          OUT ids int8[], OUT charged_at timestamptz[])
LANGUAGE plpgsql AS $$
DECLARE
    left_over int4; -- of the limit of all
    allowed int4;
    at timestamptz;
    given_tags float8[] := '{}';
    org record;
BEGIN
    ids := '{}';
    charged_at := '{}';
    IF ready = '{}' THEN
        RETURN;
    END IF;
    SELECT g.allowed
    INTO left_over
    FROM actions_grant('*', cardinality(ready), all_interval, all_burst, all_concurrency) g;
    FOR org IN SELECT x.org AS id, count(*)::int4 AS n, array_agg(x.id ORDER BY x.nth) AS ids,
                      array_agg(x.tag ORDER BY x.nth) AS tags
               FROM unnest(ready, orgs, tags) WITH ORDINALITY AS x (id, org, tag, nth)
               WHERE left_over > 0
               GROUP BY x.org ORDER BY x.org
    LOOP
        SELECT g.allowed, g.at INTO allowed, at
        FROM actions_grant(org.id, LEAST(org.n, left_over), org_interval, org_burst, org_concurrency) g;
        ids := ids || org.ids[1 : allowed];
        given_tags := given_tags || org.tags[1 : allowed];
        charged_at := charged_at || array_fill(at, ARRAY[allowed]);
    END LOOP;
    IF cardinality(ids) > left_over THEN
        WITH c AS MATERIALIZED (
            SELECT c.id, c.at, row_number() OVER (ORDER BY c.tag, c.id) AS nth
            FROM unnest(ids, charged_at, given_tags) AS c (id, at, tag)
        ),
        back AS (
            UPDATE org_limit o
            SET full_at_us = o.full_at_us - b.n * COALESCE(o.interval_us, org_interval, 0), granted = o.granted - b.n
            FROM (SELECT x.org, count(*) AS n
                  FROM c JOIN unnest(ready, orgs) AS x (id, org) ON x.id = c.id
                  WHERE c.nth > left_over
                  GROUP BY x.org) b
            WHERE o.org_id = b.org
        )
        SELECT array_agg(c.id ORDER BY c.nth), array_agg(c.at ORDER BY c.nth) INTO ids, charged_at
        FROM c WHERE c.nth <= left_over;
    END IF;
    left_over := left_over - cardinality(ids);
    IF left_over > 0 THEN
        UPDATE org_limit o
        SET full_at_us = o.full_at_us - left_over * COALESCE(o.interval_us, all_interval, 0),
            granted = o.granted - left_over
        WHERE o.org_id = '*';
    END IF;
END
$$;
