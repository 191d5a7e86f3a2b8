-- A page of `receiptd stream --backfill`: some messages in the order of their ids, as one row of the stream. $1 text:
-- ids behind this one; $2 int4: so many at most; $3 text[]: columns of the inbox. Returns rows, last (the largest id).
--
-- FOR SHARE waits for transitions in flight, and later ones wait for it. The id of the row is taken behind the last
-- lock. So it is larger than the ids of all transitions that the images hold, and smaller than those of later ones. In
-- the stream an image is never older than the record before it. A watermark without locks would need the ids of all
-- transactions in flight, since ids do not become visible in their order.
WITH page AS MATERIALIZED (
    SELECT m.* FROM message_inbox m WHERE m.message_id > $1::text ORDER BY m.message_id LIMIT $2::int4 FOR SHARE
),
images AS (
    SELECT p.message_id, p.org_id::text, p.campaign_id::text, p.status, p.flags, p.status_at,
           (SELECT jsonb_object_agg(c.name, left(w.image ->> c.name, 1000))::text
            FROM unnest($3::text[]) AS c (name)) AS columns
    FROM page p CROSS JOIN LATERAL (SELECT CASE WHEN $3::text[] <> '{}' THEN to_jsonb(p.*) END AS image) w
),
written AS (
    INSERT INTO stream_event (kind, ids, orgs, campaigns, new, flags, times, columns)
    SELECT 'row', array_agg(i.message_id), array_agg(i.org_id), array_agg(i.campaign_id), array_agg(i.status),
           array_agg(i.flags), array_agg(i.status_at), CASE WHEN $3::text[] <> '{}' THEN array_agg(i.columns) END
    FROM images i
    HAVING count(*) > 0
)
SELECT count(*) AS rows, max(p.message_id) AS last FROM page p;
