           AS stale
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[], $42::int4[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, day, n)
    LEFT JOIN message_inbox m ON m.message_id = e.id AND m.created_at >= to_timestamp(e.day * 86400.0) AND m.created_at < to_timestamp((e.day + 1) * 86400.0)
    WHERE (SELECT count(DISTINCT c.n) FROM on_day c) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM on_day c)
),
recent AS (
    UPDATE message_inbox m
