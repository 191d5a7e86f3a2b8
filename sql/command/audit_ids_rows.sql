-- The rows under some ids: $1 text[] ids. Columns: message_id, rows; organisations and campaigns: how many different
-- ones these rows have.
SELECT m.message_id, count(*) AS rows, count(DISTINCT COALESCE(m.org_id, '')) AS organisations,
       count(DISTINCT COALESCE(m.campaign_id, '')) AS campaigns
FROM message_inbox m WHERE m.message_id = ANY ($1::text[]) GROUP BY m.message_id ORDER BY m.message_id
