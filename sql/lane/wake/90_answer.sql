-- One row: rows (handled; equal to $4: there may be more), messages_changed, the transitions: old int2[], new int2[], n
-- int8[]; gateways of those that were applied: a line for each, its rows, a blank, its name (none: NULL); refused (rows
-- that became dead letters) and their gateways, refused_gateways.
SELECT (SELECT count(*) FROM gone) AS rows,
       (SELECT COALESCE(sum(n), 0)::int8 FROM changed WHERE old <> new OR gained <> 0) AS messages_changed, t.old, t.new, t.n, h.gateways, h.refused, h.refused_gateways
FROM (SELECT array_agg(g.old) AS old, array_agg(g.new) AS new, array_agg(g.n) AS n
      FROM (SELECT old, new, sum(n)::int8 AS n FROM changed WHERE new > old GROUP BY old, new) g) t,
     (SELECT string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n') FILTER (WHERE g.fits AND g.gateway IS NOT NULL) AS gateways,
             COALESCE(sum(g.n) FILTER (WHERE NOT g.fits), 0)::int8 AS refused,
             string_agg(g.n || ' ' || translate(g.gateway, E'\n', ' '), E'\n') FILTER (WHERE NOT g.fits AND g.gateway IS NOT NULL)
                 AS refused_gateways
      FROM (SELECT fits, gateway, count(*) AS n FROM gone GROUP BY fits, gateway) g) h
