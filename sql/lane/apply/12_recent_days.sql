-- What was not changed on its day: messages of that day that were up to date (known), and all others, which the recent set is searched for.
placed AS MATERIALIZED (
    SELECT e.n, e.id, e.top, e.mask, e.at, e.signature, e.org, m.message_id IS NOT NULL AS found,
           m.message_id IS NOT NULL AND (e.org IS NULL OR COALESCE(NULLIF(m.org_id, '') = e.org, false)) AS known, m.status,
           COALESCE(m.campaign_id, '') AS campaign, m.org_id AS owner,
           e.top > m.status OR (e.mask & ~m.flags) <> 0 AS stale
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[], $23::text[], $42::int4[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, org, day, n)
    LEFT JOIN message_inbox m ON m.message_id = e.id AND m.created_at >= to_timestamp(e.day * 86400.0) AND m.created_at < to_timestamp((e.day + 1) * 86400.0)
    WHERE (SELECT count(DISTINCT c.n) FROM on_day c) < cardinality($1::text[]) AND e.n NOT IN (SELECT c.n FROM on_day c)
),
recent AS (
    UPDATE message_inbox m
