-- The cells that differ, as audit_dimension/10_cells.sql has them; key is NULL.
SELECT c.campaign_id, NULL AS key, c.status, COALESCE(p.name, c.status::text) AS status_name,
       c.rows, c.counter, c.counter - c.rows AS drift, false AS older
FROM cell c LEFT JOIN message_status_priority p ON p.code = c.status
WHERE c.rows <> c.counter AND c.campaign_id NOT IN (SELECT o.campaign_id FROM older o)
UNION ALL
SELECT o.campaign_id, NULL, 0, '', 0, 0, 0, true FROM older o
ORDER BY campaign_id, status
