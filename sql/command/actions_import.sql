-- Begins runs of a pipeline: $1 text pipeline, $2 text JSON, a list of {org_id, subject, campaign_id, message_id, data}.
-- Returns rows (runs that began).
SELECT actions_import($1::text, array_agg(r.org_id), array_agg(r.subject), array_agg(r.campaign_id), array_agg(r.message_id),
                      array_agg(r.data)) AS rows
FROM jsonb_to_recordset($2::text::jsonb) AS r (org_id text, subject text, campaign_id text, message_id text, data jsonb);
