-- GET /campaigns/{campaign}/recipients, one page. Parameters: $1 text organisation (NULL: all), $2 text campaign, $3
-- text status or flag (NULL: any), $4 text form (csv, json), $5 text last message shown (NULL: none), $6 int4 most.
-- Parameter $7 text: name of the campaign (NULL: not known). One row: body (the page's lines or objects), last (NULL:
-- this is the last page), is_campaign, is_status (text true: the ladder has it). Column is_campaign, text true: there
-- are messages or, where they are retired, counters of it. Variables: customer, channel (columns of the inbox),
-- has_customer, has_channel ('true': it has them).
--
-- A spreadsheet would take some texts for formulas: they get a quote in front (src/commands/report.c has the same
-- list).
WITH page AS (
    SELECT m.message_id, COALESCE(s.name, m.status::text) AS status,
           to_char(m.status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS status_at,
           to_char(m.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at,
           (SELECT string_agg(f.name, ' ' ORDER BY f.code) FROM message_status_priority f
            WHERE f.flag_bit IS NOT NULL AND (m.flags >> f.flag_bit) & 1 = 1) AS flags,
           CASE WHEN :'has_customer' = 'true' THEN m.:"customer"::text END AS customer_id,
           CASE WHEN :'has_channel' = 'true' THEN m.:"channel"::text END AS channel
    FROM message_inbox m
    LEFT JOIN message_status_priority s ON s.code = m.status
    WHERE m.campaign_id = $2::text
      AND ($1::text IS NULL OR m.org_id = $1::text)
      AND ($5::text IS NULL OR m.message_id > $5::text)
      AND ($3::text IS NULL OR s.name = $3::text OR EXISTS (
          SELECT FROM message_status_priority f
          WHERE f.name = $3::text AND f.flag_bit IS NOT NULL AND (m.flags >> f.flag_bit) & 1 = 1))
    ORDER BY m.message_id
    LIMIT $6::int4
)
SELECT CASE $4::text
    WHEN 'csv' THEN string_agg(format(E'%s,%s,%s,%s,%s,%s,%s,%s,%s\r\n',
                                      q.cells[1], p.status, p.status_at, p.flags, p.updated_at,
                                      q.cells[2], q.cells[3], q.cells[4], q.cells[5]), '' ORDER BY p.message_id)
    ELSE string_agg(json_build_object('message_id', p.message_id, 'status', p.status, 'status_at', p.status_at,
                                      'flags', COALESCE(string_to_array(p.flags, ' '), '{}'),
                                      'updated_at', p.updated_at,
                                      'customer_id', p.customer_id, 'channel', p.channel)::text,
                    ',' ORDER BY p.message_id) END AS body,
    CASE WHEN count(*) = $6::int4 THEN max(p.message_id) END AS last,
    ($5::text IS NOT NULL OR count(*) > 0
     OR EXISTS (SELECT FROM message_inbox m
                WHERE m.campaign_id = $2::text AND ($1::text IS NULL OR m.org_id = $1::text))
     OR (EXISTS (SELECT FROM campaign_count r WHERE r.campaign_id = $2::text)
         AND ($1::text IS NULL
              OR EXISTS (SELECT FROM campaign_org w
                         WHERE w.campaign_id = $2::text AND w.org_id = $1::text))))::text AS is_campaign,
    ($3::text IS NULL OR EXISTS (SELECT FROM message_status_priority f WHERE f.name = $3::text))::text AS is_status
FROM page p
CROSS JOIN LATERAL (
    SELECT array_agg('"' || CASE WHEN c.text ~ '^[=+@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20-]' THEN '''' ELSE '' END
                         || replace(c.text, '"', '""') || '"' ORDER BY c.n) AS cells
    FROM unnest(ARRAY[p.message_id::text, p.customer_id, p.channel, $2::text, $7::text]) WITH ORDINALITY AS c (text, n)
    WHERE $4::text = 'csv'
) q;
