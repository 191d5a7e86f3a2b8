-- Messages that a rule of inbox.expiry may still change: $1 jsonb rules, as in candidates.sql, $2 text campaign (NULL:
-- all). One row: messages, due (of them those whose time is over), until (when the time of the youngest is over; NULL:
-- there is none).
WITH rules AS (
    SELECT r.*
    FROM jsonb_to_recordset($1::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
)
SELECT count(*) AS messages, count(*) FILTER (WHERE e.at < now()) AS due,
       to_char(max(e.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until
FROM message_inbox m
CROSS JOIN LATERAL (
    SELECT f.* FROM rules f WHERE f."column" IS NULL OR to_jsonb(m) ->> f."column" = f.value ORDER BY f.n LIMIT 1
) r
CROSS JOIN LATERAL (SELECT m.updated_at + NULLIF(r.after, 0) * interval '1 millisecond' AS at) e
WHERE ($2::text IS NULL OR m.campaign_id = $2::text OR ($2::text = '' AND m.campaign_id IS NULL))
  AND m.status >= r.low AND m.status < r.high AND e.at IS NOT NULL;
