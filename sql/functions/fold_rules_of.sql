-- The rules of source transitions that a transition matches, each with the key of its group. inbox: columns of the
-- message's row. A plain query, so that it becomes part of the statement that asks: a call for each transition would
-- cost more than the rest of it.
--
-- The group's key is the text of a jsonb object: shorter names first. It is put together by hand where it can be: no
-- object is built, parsed and written again.
CREATE OR REPLACE FUNCTION fold_rules_of(org text, campaign text, at timestamptz,
                                         status_name text, prev_name text,
                                         entered text[], gained text[], inbox jsonb)
RETURNS TABLE (rule text, key text, "window" interval, fields jsonb, kinds jsonb) LANGUAGE sql STABLE AS $$
    SELECT r.rule,
           CASE WHEN r.key_columns = '{}' THEN b.base
                ELSE (b.base::jsonb
                      || (SELECT jsonb_object_agg('inbox.' || w.name,
                                     CASE WHEN octet_length(inbox ->> w.name) <= 200 THEN inbox ->> w.name
                                          ELSE left(inbox ->> w.name, 40) || '…' || md5(inbox ->> w.name) END)
                          FROM unnest(r.key_columns) AS w (name)))::text END,
           r."window", r.fields, r.kinds
    FROM fold_rule r
    CROSS JOIN LATERAL (
        SELECT '{' || concat_ws(', ',
                   '"flags": ' || to_json(CASE WHEN r.by_flags THEN array_to_string(gained, '+') END)::text,
                   '"org_id": ' || to_json(CASE WHEN r.by_org THEN org END)::text,
                   '"status": ' || to_json(CASE WHEN r.by_status THEN status_name END)::text,
                   '"campaign_id": ' || to_json(CASE WHEN r.by_campaign THEN campaign END)::text,
                   '"prev_status": ' || to_json(CASE WHEN r.by_prev_status THEN prev_name END)::text) || '}' AS base) b
    WHERE r.source = 'transitions' AND (r.removed_at IS NULL OR at <= r.removed_at)
      AND (r.match = '{}'
           OR ((r.match -> 'campaign_id' IS NULL OR r.match -> 'campaign_id' ? campaign)
               AND (r.match -> 'org_id' IS NULL OR r.match -> 'org_id' ? org)
               AND (r.match -> 'prev_status' IS NULL OR r.match -> 'prev_status' ? prev_name)
               AND (r.match -> 'status' IS NULL OR r.match -> 'status' ?| entered)
               AND (r.match -> 'flags' IS NULL OR r.match -> 'flags' ?| gained)
               AND (r.columns = '{}'
                    OR NOT EXISTS (SELECT FROM unnest(r.columns) AS w (name)
                                   WHERE r.match -> ('inbox.' || w.name) IS NOT NULL
                                     AND NOT COALESCE(r.match -> ('inbox.' || w.name) ? (inbox ->> w.name), false)))))
$$;
