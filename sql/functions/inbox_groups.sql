-- The part of count_inserted() that tells the groups of new messages (counters.groups), as text of SQL; '' without
-- groups. A statement that inserts millions of messages writes rows of at most 10 000 changes, so that a roll-up can
-- take a part of them (groups_fold()).
--
-- kinds: customer, logical; groups: the column of each; the others: columns as for install_inbox_trigger().
CREATE OR REPLACE FUNCTION inbox_groups(kinds text[], groups text[], message_id text,
                                        campaign_id text, status text, flags text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN cardinality(kinds) = 0 THEN '' ELSE format($statement$
            INSERT INTO group_delta (kind, campaign_id, key, old, new, gained)
            SELECT g.kind, array_agg(g.campaign), array_agg(g.key),
                   array_agg(NULL::int2), array_agg(g.status), array_agg(g.flags)
            FROM (
                SELECT k.kind, (row_number() OVER () - 1) / 10000 AS slice, c.campaign,
                       group_key((SELECT s.salt FROM group_salt s), k.kind,
                                 c.campaign, k.value, i.%1$I::text COLLATE "C") AS key,
                       i.%3$I::int2 AS status, i.%4$I::int4 AS flags
                FROM inserted i CROSS JOIN LATERAL (SELECT COALESCE(i.%2$I::text COLLATE "C", '') AS campaign) c
                CROSS JOIN LATERAL (VALUES %5$s) k (kind, value)
            ) g
            WHERE g.key IS NOT NULL
            GROUP BY g.kind, g.slice;$statement$,
        message_id, campaign_id, status, flags,
        (SELECT string_agg(format('(%L, i.%I::text COLLATE "C")', d.kind, d.name), ', ' ORDER BY d.n)
         FROM unnest(kinds, groups) WITH ORDINALITY AS d (kind, name, n))) END
$$;
