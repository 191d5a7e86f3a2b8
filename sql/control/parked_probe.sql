-- A read-only probe of the parked rows of partitions: $1 text[] topics, $2 int4[] partitions, $3 int8 max age in ms.
-- One row per lane that has any, or a range that is due. lane; applicable: the message of one of them exists. Column
-- expired: one has no message, and it is older, an alias leads to another message id, or its message was deleted.
-- Columns: rows, oldest_ms (age of the oldest), for_alias (rows that wait for an alias), ranges (one is due), took_ms
-- (how long the server worked at it).
--
-- It makes two or three look-ups by key for each row; OFFSET 0 keeps them from being done twice. The cost grows with
-- the parked rows, some microseconds each, never with the inbox. Callers probe less often when a probe takes long.
SELECT s.lane, bool_or(s.known) AS applicable,
       bool_or(NOT s.known AND (s.old OR s.aliased OR s.retired)) AS expired, count(s.parked_at) AS rows,
       COALESCE((extract(epoch FROM now() - min(s.parked_at)) * 1000)::int8, 0) AS oldest_ms,
       count(*) FILTER (WHERE NOT s.known AND NOT s.aliased AND s.under_gateway_id) AS for_alias,
       bool_or(s.due) AS ranges,
       (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::int8 AS took_ms
FROM (
    SELECT p.lane, p.parked_at, p.parked_at < now() - $3::int8 * interval '1 millisecond' AS old,
           (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id LIMIT 1) IS NOT NULL AS known,
           (SELECT true
            FROM retired_message r
            WHERE r.hash IN (hashtextextended(p.message_id COLLATE "C", 0), erased_alias_hash(p.account, p.gateway_id))
            LIMIT 1) IS NOT NULL AS retired,
           p.gateway_id IS NOT NULL AND p.gateway_id = p.message_id AS under_gateway_id,
           CASE WHEN (SELECT true FROM message_alias a WHERE a.channel_account = p.account
                      AND a.gateway_id = COALESCE(p.gateway_id, p.message_id)) IS NOT NULL
                THEN COALESCE(alias_target(p.account, COALESCE(p.gateway_id, p.message_id)) <> p.message_id, false)
                ELSE false END AS aliased, false AS due
    FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
    JOIN parked_event p ON p.topic = w.topic AND p.partition = w.partition
    UNION ALL
    SELECT r.lane, NULL, false, false, false, false, false, true
    FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
    JOIN range_receipt r ON r.topic = w.topic AND r.partition = w.partition
    WHERE r.due_at <= now()
    OFFSET 0
) s
GROUP BY s.lane
ORDER BY s.lane;
