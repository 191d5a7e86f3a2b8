-- One row: rows (handled; equal to $4: there may be more), messages_changed, the transitions: old int2[], new int2[], n int8[], and
-- gateways: a line for each, its rows, a blank, its name (none: NULL).
SELECT (SELECT count(*) FROM taken) AS rows,
       (SELECT COALESCE(sum(n), 0)::int8 FROM changed) AS messages_changed, t.old, t.new, t.n,
       (SELECT string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n')
        FROM (SELECT gateway, count(*) AS n FROM taken WHERE gateway IS NOT NULL GROUP BY gateway) g) AS gateways
FROM (SELECT array_agg(g.old) AS old, array_agg(g.new) AS new, array_agg(g.n) AS n
      FROM (SELECT old, new, sum(n)::int8 AS n FROM changed WHERE new > old GROUP BY old, new) g) t
