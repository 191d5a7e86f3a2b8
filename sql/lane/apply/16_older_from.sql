           AS stale
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, n)
    LEFT JOIN message_inbox m ON m.message_id = e.id AND m.:"recent_column" >= ALL (:'recent_since')
    WHERE (SELECT count(DISTINCT c.n) FROM recent c) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM recent c)
),
older AS (
    UPDATE message_inbox m
