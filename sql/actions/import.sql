-- Begins runs of a pipeline: $1 text pipeline, $2 text JSON, {org_id, subject, campaign_id, message_id, data} or a
-- list of these, $3 text sampled traceparent of the request (NULL: none). Returns rows (runs that began).
SELECT actions_import($1::text, array_agg(COALESCE(r.org_id, '')), array_agg(r.subject), array_agg(r.campaign_id),
                      array_agg(r.message_id), array_agg(r.data), array_agg($3::text)) AS rows
FROM jsonb_to_recordset(CASE WHEN $2::text::jsonb @> '{}' THEN jsonb_build_array($2::text::jsonb)
                             ELSE $2::text::jsonb END)
     AS r (org_id text, subject text, campaign_id text, message_id text, data jsonb);
