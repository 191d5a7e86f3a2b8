-- Storage parameters that the inbox's table or its partitions still need. A parameter that is set stays as it is,
-- whatever its value. $1 text schema and $2 text name of the table, $3 bool: it is an existing one, $4 text its
-- column of campaigns. An index on that is advice, too: campaigns are read one by one. A partition of another owner,
-- to which the session does not belong, is left out. Columns: name; sql, which sets the missing ones (in a
-- partitioned inbox: of all its partitions); options; why; ours: migrate may set them. Other tables have theirs from
-- the beginning (sql/tables).
WITH wanted (option) AS (
    VALUES ('autovacuum_vacuum_scale_factor = 0.05'), ('autovacuum_vacuum_threshold = 10000'),
           ('autovacuum_analyze_scale_factor = 0.05'), ('autovacuum_vacuum_cost_delay = 1')
),
missing AS (
    SELECT c.oid, t.relid, string_agg(w.option, ', ' ORDER BY w.option) AS options
    FROM pg_namespace n
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
    CROSS JOIN LATERAL (SELECT c.oid AS relid WHERE c.relkind = 'r'
                        UNION ALL
                        SELECT p.relid
                        FROM pg_partition_tree(c.oid) p
                        WHERE c.relkind = 'p' AND p.isleaf AND p.level > 0) t
    JOIN pg_class l ON l.oid = t.relid AND l.relkind = 'r' AND (pg_has_role(l.relowner, 'USAGE') OR $3::bool)
    CROSS JOIN wanted w
    WHERE n.nspname = $1::name AND c.relname = $2::name
      AND NOT EXISTS (SELECT FROM pg_options_to_table(l.reloptions) s
                      WHERE s.option_name = split_part(w.option, ' = ', 1))
    GROUP BY c.oid, t.relid
)
SELECT format('%I.%I', $1::text, $2::text) AS name,
       'each row is updated two or three times when it is new: pages are cleared while they are in memory' AS why,
       NOT $3::bool AS ours, max(m.options) AS options, count(*) AS tables,
       string_agg(format('ALTER TABLE %I.%I SET (%s)', n.nspname, l.relname, m.options), '; ' ORDER BY l.relname) AS sql
FROM missing m
JOIN pg_class l ON l.oid = m.relid
JOIN pg_namespace n ON n.oid = l.relnamespace
GROUP BY m.oid
UNION ALL
SELECT format('%I.%I', n.nspname, c.relname),
       'a funnel of one campaign, its recipients and receiptd audit read the campaign alone then',
       false, 'an index on the campaign', 1,
       format('CREATE INDEX%s ON %I.%I (%s)',
              CASE WHEN c.relkind = 'r' THEN ' CONCURRENTLY' END, n.nspname, c.relname, k.key)
FROM pg_namespace n
JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $4::name AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_collation l ON l.oid = a.attcollation
-- as the view shows it (map_inbox())
CROSS JOIN LATERAL (SELECT a.atttypid IN ('text'::regtype, 'varchar'::regtype) AND l.collisdeterministic AS plain) p
CROSS JOIN LATERAL (SELECT CASE WHEN p.plain THEN format('%I', a.attname)
                                WHEN NOT l.collisdeterministic THEN format('((%I)::text COLLATE "C")', a.attname)
                                ELSE format('((%I)::text)', a.attname) END AS key) k
WHERE $3::bool AND n.nspname = $1::name AND c.relname = $2::name
  AND NOT EXISTS (SELECT FROM pg_index x
                  WHERE x.indrelid = c.oid AND x.indisvalid AND x.indpred IS NULL
                    AND CASE WHEN p.plain THEN x.indkey[0] = a.attnum
                             ELSE x.indkey[0] = 0
                                  AND pg_get_indexdef(x.indexrelid, 1, false)
                                      LIKE '((' || quote_ident(a.attname) || ')::text)%' END)
ORDER BY 1;
