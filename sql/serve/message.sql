-- GET /messages/{message}, as receiptd explain shows it: $1 text organisation (NULL: all), $2 text id. Variables:
-- customer and logical (columns of the inbox), has_customer and has_logical (false: another column stands there, and
-- is not shown). No row: no such message, or one of another organisation. Receipts are known where timeline.retention
-- is set. Only a token for all organisations sees dead letters, and receipts that wait for a message that is not
-- there.
WITH receipts AS (
    SELECT t.*,
           EXISTS (SELECT FROM dead_letter d
                   WHERE d.topic = t.topic
                     AND d.partition = t.partition
                     AND d."offset" = t."offset"
                     AND d.index = t.index) AS dead,
           o.name AS old_name, n.name AS new_name, COALESCE(s.name, t.status::text) AS status_name,
           (SELECT array_agg(f.name ORDER BY f.code) FROM message_status_priority f
            WHERE f.flag_bit IS NOT NULL AND (t.gained >> f.flag_bit) & 1 = 1) AS gained_names
    FROM message_timeline t
    LEFT JOIN message_status_priority s ON s.code = t.status
    LEFT JOIN message_status_priority o ON o.code = t.old
    LEFT JOIN message_status_priority n ON n.code = t.new
    WHERE t.message_id = $2::text
    ORDER BY t.recorded_at, t.topic, t.partition, t."offset", t.index
    LIMIT 1000
)
SELECT json_build_object(
    'message_id', m.message_id, 'campaign_id', m.campaign_id, 'org_id', m.org_id,
    'customer', CASE WHEN :'has_customer'::bool THEN m.:"customer"::text END,
    'logical', CASE WHEN :'has_logical'::bool THEN m.:"logical"::text END,
    'parts', (SELECT json_build_object('parts', p.parts, 'delivered', p.delivered)
              FROM message_part p WHERE p.message_id = $2::text),
    'status', COALESCE(s.name, m.status::text), 'status_code', m.status,
    'status_at', to_char(m.status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'updated_at', to_char(m.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'flags', (SELECT COALESCE(json_agg(f.name ORDER BY f.code), '[]') FROM message_status_priority f
              WHERE f.flag_bit IS NOT NULL AND (m.flags >> f.flag_bit) & 1 = 1),
    'path', (SELECT COALESCE(json_agg(a.name ORDER BY a.priority), '[]') FROM status_path p
             JOIN message_status_priority a ON a.code = p.ancestor WHERE p.code = m.status),
    'receipts', (SELECT COALESCE(json_agg(json_build_object(
        'at', to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'recorded_at', to_char(t.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'topic', t.topic, 'partition', t.partition, 'offset', t."offset", 'index', t.index,
        'status', t.status_name, 'old', t.old_name, 'new', t.new_name, 'gained', COALESCE(t.gained_names, '{}'),
        'gateway', t.gateway, 'reason', t.reason, 'reason_class', t.reason_class, 'event_id', t.event_id,
        'part', t.part, 'parts', t.parts,
        'effect', CASE WHEN t.new IS NULL AND t.dead THEN 'refused' WHEN t.new IS NULL THEN COALESCE(t.waited, 'waited')
                       WHEN t.new IS DISTINCT FROM t.old THEN 'applied' WHEN t.gained <> 0 THEN 'flagged'
                       WHEN t.status = t.old THEN 'duplicate' ELSE 'stale' END)
        ORDER BY t.recorded_at, t.topic, t.partition, t."offset", t.index), '[]') FROM receipts t),
    'parked', (SELECT COALESCE(json_agg(json_build_object(
        'status', COALESCE(k.name, p.status::text),
        'at', to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'parked_at', to_char(p.parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'gateway', p.account, 'reason_class', p.reason_class, 'part', p.part, 'parts', p.parts,
        'topic', p.topic, 'partition', p.partition, 'offset', p."offset", 'index', p.index) ORDER BY p.parked_at), '[]')
        FROM parked_event p LEFT JOIN message_status_priority k ON k.code = p.status
        WHERE p.message_id = $2::text AND ($1::text IS NULL OR p.org_id IS NULL OR p.org_id = $1::text)),
    'dead_letters', (SELECT COALESCE(json_agg(json_build_object(
        'topic', d.topic, 'partition', d.partition, 'offset', d."offset",
        'index', d.index, 'reason', d.reason, 'detail', d.detail,
        'dead_at', to_char(d.dead_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY d.dead_at), '[]')
        FROM receipts t
        JOIN dead_letter d ON d.topic = t.topic AND d.partition = t.partition AND d."offset" = t."offset"
                         AND d.index = t.index
        WHERE $1::text IS NULL),
    'actions', (SELECT COALESCE(json_agg(json_build_object(
        'id', a.id, 'run', a.run_id, 'pipeline', p.name, 'stage', q.stage,
        'op', q.op, 'status', a.status, 'attempt', a.attempt,
        'perform_at', to_char(a.perform_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY a.id), '[]')
        FROM action a
        JOIN pipeline p ON p.id = a.pipeline_id
        JOIN pipeline_step q ON q.pipeline_id = a.pipeline_id AND q.step = a.step
        WHERE a.message_id = $2::text COLLATE "C" AND a.status = 'pending' AND a.awaits IS NOT NULL
          AND ($1::text IS NULL OR a.org_id = $1::text)))::text AS body
FROM message_inbox m
LEFT JOIN message_status_priority s ON s.code = m.status
WHERE m.message_id = $2::text AND ($1::text IS NULL OR m.org_id = $1::text);
