           AS stale
    FROM unnest($1::text[], $2::int2[], $3::int4[], $5::int4[], $23::text[]) WITH ORDINALITY AS e (id, top, mask, signature, org, n) LEFT JOIN message_inbox m ON m.message_id = e.id
    WHERE (SELECT count(DISTINCT u.n) FROM u) < cardinality($1::text[]) AND e.n NOT IN (SELECT u.n FROM u)
),
