-- What ?pending=true adds to a funnel: $1 text organisation (NULL: all), $2 text campaign, $3 text rules of
-- inbox.expiry, as sql/expiry/pending.sql has them. Of a campaign that has a name: so the index on it serves. Reads
-- each message of the campaign, but none of another organisation's.
SELECT json_build_object('messages', count(*), 'until', to_char(max(e.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))::text AS body
FROM message_inbox m
CROSS JOIN LATERAL (
    SELECT r.* FROM jsonb_to_recordset($3::text::jsonb) AS r (n int4, "column" text, value text, low int2, high int2, after int8)
    WHERE r."column" IS NULL OR to_jsonb(m) ->> r."column" = r.value ORDER BY r.n LIMIT 1
) r
CROSS JOIN LATERAL (SELECT m.updated_at + NULLIF(r.after, 0) * interval '1 millisecond' AS at) e
WHERE m.campaign_id = $2::text AND m.status >= r.low AND m.status < r.high AND e.at IS NOT NULL
  AND ($1::text IS NULL OR EXISTS (SELECT FROM campaign_org a WHERE a.campaign_id = $2::text AND a.org_id = $1::text));
