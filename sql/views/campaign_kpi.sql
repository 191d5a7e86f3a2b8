-- What the rates are made of: one row for each (KPI, part of the fraction, status), by name, since the ladder can be
-- replaced. A row whose status is not in the ladder drops out; a KPI without numerator or denominator drops out with it.
CREATE OR REPLACE VIEW kpi_part AS
WITH final (code) AS (
    -- A receipt that settles a message: DELIVERED, or a terminal status below SENT; only the outermost, as a path counts
    -- all its statuses.
    SELECT k.code
    FROM message_status_priority k
    WHERE (k.terminal OR k.name = 'DELIVERED')
      AND EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                  WHERE s.code = k.code AND s.code <> s.ancestor AND a.name = 'SENT')
      AND NOT EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                      WHERE s.code = k.code AND s.code <> s.ancestor
                        AND (a.terminal OR a.name = 'DELIVERED') AND a.name <> 'SENT')
)
SELECT d.kpi, d.part, k.code AS status, d.measure
FROM (VALUES
    ('sent_per_targeted',          'numerator',   'SENT',               'messages'),
    ('sent_per_targeted',          'denominator', 'TARGETED',           'messages'),
    ('skipped_per_targeted',       'numerator',   'SKIPPED',            'messages'),
    ('skipped_per_targeted',       'denominator', 'TARGETED',           'messages'),
    ('rejected_per_targeted',      'numerator',   'REJECTED',           'messages'),
    ('rejected_per_targeted',      'denominator', 'TARGETED',           'messages'),
    ('delivered_per_sent',         'numerator',   'DELIVERED',          'messages'),
    ('delivered_per_sent',         'denominator', 'SENT',               'messages'),
    ('hard_bounced_per_sent',      'numerator',   'BOUNCED_HARD',       'messages'),
    ('hard_bounced_per_sent',      'numerator',   'BOUNCED_HARD_EMAIL', 'messages'),
    ('hard_bounced_per_sent',      'denominator', 'SENT',               'messages'),
    ('soft_bounced_per_sent',      'numerator',   'BOUNCED_SOFT',       'messages'),
    ('soft_bounced_per_sent',      'denominator', 'SENT',               'messages'),
    ('blocked_per_sent',           'numerator',   'BLOCKED',            'messages'),
    ('blocked_per_sent',           'denominator', 'SENT',               'messages'),
    ('failed_per_sent',            'numerator',   'FAILED',             'messages'),
    ('failed_per_sent',            'denominator', 'SENT',               'messages'),
    ('expired_per_sent',           'numerator',   'EXPIRED',            'messages'),
    ('expired_per_sent',           'denominator', 'SENT',               'messages'),
    ('pending_per_sent',           'numerator',   'SENT',               'current'),
    ('pending_per_sent',           'numerator',   'DEFERRED',           'current'),
    ('pending_per_sent',           'denominator', 'SENT',               'messages'),
    ('receipts_per_sent',          'denominator', 'SENT',               'messages'),
    ('opened_per_delivered',       'numerator',   'OPENED',             'messages'),
    ('opened_per_delivered',       'denominator', 'DELIVERED',          'messages'),
    ('clicked_per_delivered',      'numerator',   'CLICKED',            'messages'),
    ('clicked_per_delivered',      'denominator', 'DELIVERED',          'messages'),
    ('clicked_per_opened',         'numerator',   'CLICKED',            'messages'),
    ('clicked_per_opened',         'denominator', 'OPENED',             'messages'),
    ('complained_per_delivered',   'numerator',   'COMPLAINED',         'messages'),
    ('complained_per_delivered',   'denominator', 'DELIVERED',          'messages'),
    ('unsubscribed_per_delivered', 'numerator',   'UNSUBSCRIBED',       'messages'),
    ('unsubscribed_per_delivered', 'denominator', 'DELIVERED',          'messages'),
    ('replied_per_delivered',      'numerator',   'REPLIED',            'messages'),
    ('replied_per_delivered',      'denominator', 'DELIVERED',          'messages'),
    ('total_opens_per_delivered',  'numerator',   'OPENED',             'events'),
    ('total_opens_per_delivered',  'denominator', 'DELIVERED',          'messages'),
    ('total_clicks_per_delivered', 'numerator',   'CLICKED',            'events'),
    ('total_clicks_per_delivered', 'denominator', 'DELIVERED',          'messages')
) AS d (kpi, part, name, measure)
JOIN message_status_priority k ON k.name = d.name
UNION ALL
SELECT 'receipts_per_sent', 'numerator', f.code, 'messages' FROM final f;

-- value is NULL where the denominator is 0.
CREATE OR REPLACE VIEW campaign_kpi AS
SELECT f.campaign_id, f.kpi, f.numerator::double precision / NULLIF(f.denominator, 0) AS value, f.numerator,
       f.denominator, f.org_id
FROM (
    SELECT c.campaign_id, d.kpi, max(c.org_id) AS org_id,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'numerator'), 0)::bigint AS numerator,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'denominator'), 0)::bigint AS denominator
    FROM campaign_funnel c
    CROSS JOIN (SELECT kpi FROM kpi_part WHERE part = 'numerator'
                INTERSECT SELECT kpi FROM kpi_part WHERE part = 'denominator') d
    LEFT JOIN kpi_part k ON k.kpi = d.kpi AND k.status = c.status
    CROSS JOIN LATERAL (SELECT CASE k.measure WHEN 'messages' THEN c.messages WHEN 'events' THEN c.events
                                              WHEN 'current' THEN c.current END AS n) m
    GROUP BY c.campaign_id, d.kpi
) f;
