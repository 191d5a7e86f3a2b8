-- Reasons why ranges cannot find the messages of an existing table. One row for each problem, as inbox_problems has
-- them. Parameters: $1 text its schema, $2 text its name, $3 text[] the columns of the person and the account, $4
-- text the column of the time of sending.
SELECT CASE WHEN a.attnum IS NULL
            THEN format('inbox table %s has no column %I, by which ranges find messages', t.name, d.name)
            ELSE format('column %I of inbox table %s, by which ranges find messages, is of type %s, not %s',
                        d.name, t.name, format_type(a.atttypid, NULL), d.types[1]) END AS problem,
       'let inbox.columns.recipient, gateway and sent_at name columns with these values, '
       'and make an index over the three in this order' AS advice,
       NULL AS sql
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1::name AND c.relname = $2::name) t
CROSS JOIN (SELECT c.name, c.n, '{text,character varying}'::text[] AS types
            FROM unnest($3::text[]) WITH ORDINALITY AS c (name, n)
            UNION ALL SELECT $4::text, 3, '{timestamp with time zone}') d
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = d.name::name AND a.attnum > 0 AND NOT a.attisdropped
WHERE (format_type(a.atttypid, NULL) = ANY (d.types)) IS NOT TRUE
ORDER BY d.n;
