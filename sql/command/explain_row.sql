-- The message's row: $1 text id, $2 and $3 text columns of the customer and of the logical message (NULL: none).
-- Columns are status and flags by name, the path from the root, times in RFC 3339 (UTC), and the parts of it that are
-- delivered. proven: when receiptd maintain last recounted its campaign's counters, and whether they were off.
SELECT m.message_id, m.org_id, m.campaign_id, m.status, COALESCE(s.name, m.status::text) AS status_name, m.flags,
       (SELECT string_agg(f.name, ' ' ORDER BY f.code) FROM message_status_priority f
        WHERE f.flag_bit IS NOT NULL AND (m.flags >> f.flag_bit) & 1 = 1) AS flag_names,
       (SELECT string_agg(a.name, ' ' ORDER BY a.priority)
        FROM status_path p JOIN message_status_priority a ON a.code = p.ancestor
        WHERE p.code = m.status) AS path,
       COALESCE(b.name, m.prev_status::text) AS before_name,
       to_char(m.status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS status_at,
       to_char(m.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS updated_at,
       to_jsonb(m) ->> $2::text AS customer, to_jsonb(m) ->> $3::text AS logical,
       (SELECT format('%s of %s delivered: %s', cardinality(p.delivered), p.parts, array_to_string(p.delivered, ' '))
        FROM message_part p WHERE p.message_id = m.message_id COLLATE "default") AS parts,
       (SELECT to_char(p.proven_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || CASE WHEN p.drift > 0
                   THEN format(', %s cells were off', p.drift) ELSE '' END
        FROM campaign_proof p WHERE p.campaign_id = COALESCE(m.campaign_id, '')) AS proven
FROM message_inbox m
LEFT JOIN message_status_priority s ON s.code = m.status
LEFT JOIN message_status_priority b ON b.code = m.prev_status
WHERE m.message_id = $1::text;
