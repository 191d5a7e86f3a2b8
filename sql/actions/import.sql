-- Begins runs of a pipeline: $1 text pipeline, $2 text JSON, {org_id, subject, campaign_id, message_id, stage, data} or
-- a list of these, $3 text the stage of those that name none; NULL: the first one, $4 text sampled traceparent of the
-- request (NULL: none). Returns rows (runs that began), waiting and dropped (by a cap), and over: the cap that refuses
-- all of them (NULL: none), as JSON {org_id, cap, open, beyond}.
SELECT i.rows, i.waiting, i.dropped, i.over
FROM actions_request($1::text, CASE WHEN $2::text::jsonb @> '{}' THEN jsonb_build_array($2::text::jsonb)
                                    ELSE $2::text::jsonb END, $3::text, $4::text) i;
