-- Whether our own inbox lacks what ranges need: its columns, or the index over them. $1 text schema, $2 text[] columns
-- in the order of the index. Returns missing.
SELECT (SELECT array_agg(a.attname::text ORDER BY k.n)
        FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indexrelid = to_regclass(format('%I.message_inbox_recipient', $1::text)))
           IS DISTINCT FROM $2::text[] AS missing;
