-- The parts of receiptd's own rates (kpi_definition): one row for each (KPI, part of the fraction, status), by name,
-- since the ladder can be replaced. A row whose status is not in the ladder drops out; a KPI without numerator or
-- denominator drops out with it. A KPI whose statuses are there, but not below each other, is undefined: `because`
-- says why.
CREATE OR REPLACE VIEW kpi_part AS
WITH final (code) AS (
    -- A receipt that settles a message: DELIVERED, or a terminal status below SENT; only the outermost, as a path
    -- counts all its statuses.
    SELECT k.code
    FROM message_status_priority k
    WHERE (k.terminal OR k.name = 'DELIVERED')
      AND EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                  WHERE s.code = k.code AND s.code <> s.ancestor AND a.name = 'SENT')
      AND NOT EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                      WHERE s.code = k.code AND s.code <> s.ancestor
                        AND (a.terminal OR a.name = 'DELIVERED') AND a.name <> 'SENT')
),
defined AS (
    SELECT d.kpi, n.name AS numerator, m.name AS denominator, d.measure
    FROM kpi_definition d CROSS JOIN unnest(d.numerator) n (name) CROSS JOIN unnest(d.denominator) m (name)
    WHERE d.vendor = ''
),
-- In the ladder of the database: a rate is a share only if the denominator is on the numerator's path. Then each
-- message that is counted above is counted below. A flag's path is that of the status that it implies.
placed AS (
    SELECT d.kpi, d.measure, n.code, m.code AS per, n.name, m.name AS per_name, n.flag_bit IS NOT NULL AS is_flag,
           EXISTS (SELECT FROM status_path s
                   WHERE s.code = CASE WHEN n.flag_bit IS NULL THEN n.code ELSE n.implies END
                     AND s.ancestor = m.code) AS below
    FROM defined d
    JOIN message_status_priority n ON n.name = d.numerator
    JOIN message_status_priority m ON m.name = d.denominator
)
-- If two numerators are on one path, the outer one counts the messages of both; `current` counts each message in one
-- place.
SELECT p.kpi, 'numerator' AS part, p.code AS status, p.measure, NULL AS because
FROM placed p
WHERE p.below AND (p.measure = 'current' OR NOT EXISTS (
    SELECT FROM placed o JOIN status_path s ON s.ancestor = o.code
    WHERE o.kpi = p.kpi AND o.below AND o.code <> p.code AND s.code = p.code))
UNION ALL
SELECT DISTINCT p.kpi, 'denominator', p.per, CASE p.measure WHEN 'customers' THEN p.measure ELSE 'messages' END, NULL
FROM placed p
WHERE p.below
UNION ALL
SELECT 'receipts_per_sent', 'numerator', f.code, 'messages', NULL FROM final f
UNION ALL
SELECT 'receipts_per_sent', 'denominator', k.code, 'messages', NULL FROM message_status_priority k WHERE k.name = 'SENT'
UNION ALL
SELECT p.kpi, 'undefined', NULL, NULL,
       string_agg(format('%s %s %s', p.name,
                         CASE WHEN p.is_flag THEN 'does not imply' ELSE 'is not below' END, p.per_name),
                  ', ')
FROM placed p
GROUP BY p.kpi
HAVING NOT bool_or(p.below);

-- value is NULL where the denominator is 0. Events are at least the messages: an open that is known from its click has
-- no receipt of its own. Rates of customers (counters.groups): as the last roll-up left them, and none where a campaign
-- has none.
CREATE OR REPLACE VIEW campaign_kpi AS
SELECT f.campaign_id, f.kpi, f.numerator::double precision / NULLIF(f.denominator, 0) AS value, f.numerator,
       f.denominator, f.org_id
FROM (
    SELECT c.campaign_id, d.kpi, max(c.org_id) AS org_id,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'numerator'), 0)::bigint AS numerator,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'denominator'), 0)::bigint AS denominator
    FROM campaign_funnel c
    CROSS JOIN (SELECT p.kpi, bool_or(p.measure = 'customers') AS of_customers
                FROM kpi_part p
                WHERE p.part IN ('numerator', 'denominator')
                GROUP BY p.kpi HAVING count(DISTINCT p.part) = 2) d
    LEFT JOIN kpi_part k ON k.kpi = d.kpi AND k.status = c.status
    LEFT JOIN (SELECT a.campaign_id, a.status, sum(a.messages)::bigint AS customers
               FROM (SELECT t.campaign_id, t.status, t.messages FROM campaign_tally_total t WHERE t.kind = 'customer'
                     UNION ALL
                     SELECT u.campaign_id, u.status, u.messages
                     FROM counter_delta d,
                          unnest(d.campaign_id, d.status, d.messages) AS u (campaign_id, status, messages)
                     WHERE d.kind = 'customer') a
               GROUP BY a.campaign_id, a.status) g ON g.campaign_id = c.campaign_id AND g.status = c.status
    CROSS JOIN LATERAL (SELECT CASE k.measure WHEN 'messages' THEN c.messages
                                              WHEN 'events' THEN GREATEST(c.events, c.messages)
                                              WHEN 'current' THEN c.current
                                    WHEN 'customers' THEN g.customers END AS n) m
    GROUP BY c.campaign_id, d.kpi, d.of_customers
    HAVING NOT d.of_customers OR count(g.customers) > 0
) f;
