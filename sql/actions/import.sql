-- Begins runs of a pipeline: $1 text pipeline, $2 text JSON, {org_id, subject, campaign_id, message_id, data} or a
-- list of these. Returns rows (runs that began), waiting and dropped (by a cap), and over: the cap that refuses
-- all of them (NULL: none), as JSON {org_id, cap, open, beyond}.
SELECT i.began - i.waiting AS rows, i.waiting, i.dropped, i.over
FROM (SELECT array_agg(COALESCE(r.org_id, '')) AS orgs, array_agg(r.subject) AS subjects,
             array_agg(r.campaign_id) AS campaigns, array_agg(r.message_id) AS messages, array_agg(r.data) AS rows
      FROM jsonb_to_recordset(CASE WHEN $2::text::jsonb @> '{}' THEN jsonb_build_array($2::text::jsonb)
                                   ELSE $2::text::jsonb END)
           AS r (org_id text, subject text, campaign_id text, message_id text, data jsonb)) r
CROSS JOIN LATERAL actions_import($1::text, r.orgs, r.subjects, r.campaigns, r.messages, r.rows, true) i;
