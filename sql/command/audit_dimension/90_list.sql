-- The cells that differ: campaign_id, key (NULL: the sum over all keys), status, status_name, rows, counter, drift;
-- older: the campaign is older than the dimension. One row for a campaign that is older, whatever differs.
SELECT c.campaign_id, c.key, c.status, COALESCE(p.name, c.status::text) AS status_name,
       c.rows, c.counter, c.counter - c.rows AS drift, false AS older
FROM compared c LEFT JOIN message_status_priority p ON p.code = c.status
WHERE c.rows <> c.counter AND c.campaign_id NOT IN (SELECT o.campaign_id FROM older o)
UNION ALL
SELECT o.campaign_id, NULL, 0, '', 0, 0, 0, true FROM older o
ORDER BY campaign_id, key, status
