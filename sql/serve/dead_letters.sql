-- GET /dead-letters, newest first: $1 text organisation; letters belong to none, so only a token for all (NULL) sees
-- them. Parameters: $2 text reason (NULL: any), $3 text key of the last one shown (NULL: none), with its time in
-- microseconds since 1970, $4 int4 most. It never shows the payload, which may hold telephone numbers.
WITH page AS (
    SELECT d.topic, d.partition, d."offset", d.index, d.reason, d.detail, d.indexes, d.dead_at, z.size,
           to_char(d.dead_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS dead, row_number() OVER w AS n
    FROM dead_letter d
    JOIN dead_letter_size z ON z.topic = d.topic AND z.partition = d.partition AND z."offset" = d."offset"
        AND z.index = d.index
    WHERE $1::text IS NULL AND ($2::text IS NULL OR d.reason = $2::text)
      AND ($3::text IS NULL OR (d.dead_at, d.topic, d.partition, d."offset", d.index)
           < (timestamptz 'epoch' + split_part($3::text, '|', 1)::int8 * interval '1 microsecond',
              split_part($3::text, '|', 2), split_part($3::text, '|', 3)::int4,
              split_part($3::text, '|', 4)::int8, split_part($3::text, '|', 5)::int4))
    WINDOW w AS (ORDER BY d.dead_at DESC, d.topic DESC, d.partition DESC, d."offset" DESC, d.index DESC)
    ORDER BY d.dead_at DESC, d.topic DESC, d.partition DESC, d."offset" DESC, d.index DESC
    LIMIT $4::int4
)
SELECT json_build_object('dead_letters', COALESCE(json_agg(json_build_object(
    'id', concat_ws('/', p.topic, p.partition, p."offset", p.index), 'topic', p.topic,
    'partition', p.partition, 'offset', p."offset", 'index', p.index, 'reason', p.reason, 'detail', p.detail,
    'receipts', COALESCE(cardinality(p.indexes), 1),
    'size', p.size, 'dead_at', p.dead) ORDER BY p.n), '[]'),
    'next', CASE WHEN count(*) = $4::int4
            THEN (array_agg(concat_ws('|', (extract(epoch FROM p.dead_at) * 1000000)::int8,
                                      p.topic, p.partition, p."offset", p.index)
                            ORDER BY p.n DESC))[1] END)::text AS body
FROM page p;
