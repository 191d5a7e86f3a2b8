-- The part of count_inserted() that counts new messages in dimensions, as text of SQL; '' without dimensions.
--
-- kinds: those of the dimensions in counter_delta; dimensions: the column of each; the others: columns as for
-- install_inbox_trigger().
CREATE OR REPLACE FUNCTION inbox_dimensions(kinds text[], dimensions text[], campaign_id text, status text, flags text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN cardinality(kinds) = 0 THEN '' ELSE format($statement$
            INSERT INTO counter_delta (kind, campaign_id, key, status, messages, events)
            SELECT s.kind, array_agg(s.campaign), array_agg(s.key),
                   array_agg(s.code), array_agg(s.n), array_agg(0::int8)
            FROM (
                SELECT g.kind, g.campaign, g.key, p.code, sum(g.n)::int8 AS n
                FROM (
                    SELECT k.kind, COALESCE(i.%1$I::text COLLATE "C", '') AS campaign,
                           dimension_key(k.value) AS key, i.%2$I AS status, i.%3$I AS flags, count(*) AS n
                    FROM inserted i CROSS JOIN LATERAL (VALUES %4$s) k (kind, value)
                    GROUP BY 1, 2, 3, 4, 5
                ) g
                CROSS JOIN LATERAL (
                    SELECT a.ancestor AS code FROM status_path a WHERE a.code = g.status
                    UNION ALL
                    SELECT (9001 + bit)::int2
                    FROM generate_series(0, 30) bit
                    WHERE g.flags <> 0 AND (g.flags >> bit) & 1 = 1
                ) p
                GROUP BY 1, 2, 3, 4
            ) s
            GROUP BY s.kind;$statement$,
        campaign_id, status, flags,
        (SELECT string_agg(format('(%L, i.%I::text COLLATE "C")', d.kind, d.name), ', ' ORDER BY d.n)
         FROM unnest(kinds, dimensions) WITH ORDINALITY AS d (kind, name, n))) END
$$;
