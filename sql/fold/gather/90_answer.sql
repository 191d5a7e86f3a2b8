-- One row: rows (taken), rest (bool: there may be more rows of topics), and of the entries that $14 asks for their
-- groups: entries int4[], rules text[], keys text[], windows int8[] (microseconds).
SELECT t.rows, t.rest, k.entries, k.rules, k.keys, k.windows, fold_check_gone(cardinality($1::int8[]), g.n)
FROM (SELECT count(*) AS rows, count(*) >= $15::int4 OR COALESCE(sum(size), 0) >= $16::int8 AS rest FROM taken) t,
     (SELECT count(*) AS n FROM gone) g,
     (SELECT array_agg(entry) AS entries, array_agg(rule) AS rules, array_agg(key) AS keys,
             array_agg((extract(epoch FROM "window") * 1000000)::int8) AS windows
      FROM keyed WHERE entry >= $14::int4) k
