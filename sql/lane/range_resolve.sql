-- Resolves the next messages of the lane's ranges. It parks a receipt for each message that the range can still
-- raise, in the lane of that message. Its next wake applies the receipt like any other. It comes after a fence with
-- new = expected: the ranges are this lane's. It locks no message. Parameters: $1 text[] topics, $2 int4[]
-- partitions, $3 int4 lane, $4 int4 most messages to look at for each of sixteen ranges, $6 int4 1: the timeline is
-- written. Parameter $5 int8: ms after which a range is looked at a second time, for messages whose row came late.
-- Variables: range_account, range_recipient, range_sent: columns of the inbox. Returns ranges (looked at), again
-- (there is more to do at once), messages (parked), idle (ranges whose first look has found nothing to raise).
WITH
-- A parked receipt of a range has an index above those of records: 200 000 for each index, so that its numbers begin
-- again only when none of them waits.
due AS MATERIALIZED (
    SELECT f.*,
           CASE WHEN f.found % 200000 + $4::int4 > 200000 THEN (f.found / 200000 + 1) * 200000 ELSE f.found END AS base,
           row_number() OVER () AS turn
    FROM (
        SELECT r.*
        FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS w (topic, partition, n)
        CROSS JOIN LATERAL (
            SELECT g.* FROM range_receipt g
            WHERE g.lane = $3::int4 AND g.topic = w.topic AND g.partition = w.partition AND g.due_at <= now()
              AND (g.found % 200000 + $4::int4 <= 200000
                   OR (SELECT true
                       FROM parked_event p
                       WHERE p.topic = g.topic AND p.partition = g.partition AND p."offset" = g."offset"
                         AND p.index >= (g.index + 1) * 200000 AND p.index - 200000 < (g.index + 1) * 200000
                       LIMIT 1) IS NULL)
            ORDER BY g."offset", g.index LIMIT 16
        ) r
        ORDER BY w.n, r."offset", r.index LIMIT 16
    ) f
),
seen AS MATERIALIZED (
    SELECT d.turn, m.message_id, m.status, m.org_id, m.sent,
           row_number() OVER (PARTITION BY d.turn ORDER BY m.sent, m.message_id) AS n
    FROM due d
    CROSS JOIN LATERAL (
        SELECT m.message_id, m.status, m.org_id, m.:"range_sent" AS sent
        FROM message_inbox m
        WHERE m.:"range_account" = d.account AND m.:"range_recipient" = d.recipient AND m.:"range_sent" <= d.until
          AND m.:"range_sent" >= d.after_at AND (m.:"range_sent", m.message_id) > (d.after_at, d.after_id)
        ORDER BY m.:"range_sent", m.message_id LIMIT $4::int4
    ) m
),
-- A message that has failed was not sent to the person, as far as is known. A range does not name it, so it does not
-- correct that. UNKNOWN says that no receipt came. From several ranges with one status, the message gets the receipt
-- with the smallest time; none while one waits.
meant AS (
    SELECT DISTINCT ON (s.message_id, d.status)
           s.turn, s.message_id, s.n, d.topic, d.partition, d."offset", d.index, d.status, d.at, d.base,
           d.account, d.org_id, d.gateway, d.traceparent
    FROM seen s JOIN due d ON d.turn = s.turn JOIN message_status_priority l ON l.code = s.status
    WHERE s.status < d.status
      AND (NOT l.terminal OR l.name = 'UNKNOWN')
      AND (d.org_id IS NULL OR d.org_id = s.org_id COLLATE "C")
      AND (SELECT true
           FROM parked_event p
           WHERE p.message_id = s.message_id COLLATE "default" AND p.status = d.status AND p.index >= 200000
           LIMIT 1) IS NULL
    ORDER BY s.message_id, d.status, d.at, s.turn
),
found AS MATERIALIZED (
    SELECT m.*,
           (m.index + 1) * 200000
               + (m.base + row_number() OVER (PARTITION BY m.turn ORDER BY m.n) - 1)::int4 % 200000 AS number
    FROM meant m
),
-- The payload is that of an ordinary receipt of the message: it may become a dead letter, and does not name the person.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id,
                              status, at, payload, traceparent, gateway, org_id, account)
    SELECT f.topic, f.partition, f."offset", f.number,
           hashtextextended(f.message_id COLLATE "C", 0) & (c.lanes - 1), f.message_id, f.status, f.at,
           convert_to(jsonb_strip_nulls(jsonb_build_object(
               'message_id', f.message_id, 'status', l.name, 'gateway', f.account, 'org_id', f.org_id,
               'at', to_char(f.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))::text, 'UTF8'),
           f.traceparent, f.gateway, f.org_id, f.account
    FROM found f JOIN consumer_topic c ON c.topic = f.topic JOIN message_status_priority l ON l.code = f.status
),
noted AS (
    INSERT INTO message_timeline (message_id, topic, partition, "offset", index, status, at, gateway)
    SELECT f.message_id, f.topic, f.partition, f."offset", f.number, f.status, f.at, f.account
    FROM found f WHERE $6::int4 = 1
),
ends AS MATERIALIZED (
    SELECT d.topic, d.partition, d."offset", d.index, d.looks, l.n = $4::int4 AS more, l.sent, l.message_id,
           d.base + (SELECT count(*) FROM found f WHERE f.turn = d.turn)::int4 AS found
    FROM due d
    LEFT JOIN LATERAL (SELECT s.n, s.sent, s.message_id FROM seen s WHERE s.turn = d.turn ORDER BY s.n DESC LIMIT 1) l
        ON true
),
gone AS (
    DELETE FROM range_receipt r USING ends e
    WHERE r.topic = e.topic AND r.partition = e.partition AND r."offset" = e."offset" AND r.index = e.index
      AND e.more IS NOT TRUE AND e.looks > 0
),
kept AS (
    UPDATE range_receipt r
    SET found = e.found, looks = CASE WHEN e.more THEN r.looks ELSE r.looks + 1 END,
        due_at = CASE WHEN e.more THEN r.due_at ELSE r.stored_at + $5::int8 * interval '1 millisecond' END,
        after_at = CASE WHEN e.more THEN e.sent ELSE '-infinity' END,
        after_id = CASE WHEN e.more THEN e.message_id ELSE '' END
    FROM ends e
    WHERE r.topic = e.topic AND r.partition = e.partition AND r."offset" = e."offset" AND r.index = e.index
      AND (e.more OR e.looks = 0)
)
SELECT count(*) AS ranges, COALESCE(bool_or(e.more), false) OR count(*) = 16 AS again,
       (SELECT count(*) FROM found) AS messages,
       count(*) FILTER (WHERE e.more IS NOT TRUE AND e.looks = 0 AND e.found = 0) AS idle
FROM ends e;
