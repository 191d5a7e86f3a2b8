-- The group's key is the text of a jsonb object: shorter names first. It is put together by hand where it can be: no
-- object is built, parsed and written again.
, keyed AS MATERIALIZED (
    SELECT r.rule, r.fields, r.kinds, m.org, m.campaign, e.status, e.prev_status, e.flags, m.columns, e.names,
           e.deltas, m.n, m.first_at, m.last_at, m.link, m.entry, r."window",
           CASE WHEN r.key_columns = '{}' THEN b.base
                ELSE (b.base::jsonb
                      || (SELECT jsonb_object_agg('inbox.' || w.name,
                                     CASE WHEN octet_length(m.columns ->> w.name) <= 200 THEN m.columns ->> w.name
                                          ELSE left(m.columns ->> w.name, 40) || '…' || md5(m.columns ->> w.name) END)
                          FROM unnest(r.key_columns) AS w (name)))::text END AS key
    FROM moved m
    JOIN meaning e ON e.old = m.old AND e.new = m.new AND e.gained = m.gained
    CROSS JOIN fold_rule r
    CROSS JOIN LATERAL (
        SELECT '{' || concat_ws(', ',
                   '"flags": ' || to_json(CASE WHEN r.by_flags THEN array_to_string(e.flags, '+') END)::text,
                   '"org_id": ' || to_json(CASE WHEN r.by_org THEN m.org END)::text,
                   '"status": ' || to_json(CASE WHEN r.by_status THEN e.status END)::text,
                   '"campaign_id": ' || to_json(CASE WHEN r.by_campaign THEN m.campaign END)::text,
                   '"prev_status": ' || to_json(CASE WHEN r.by_prev_status THEN e.prev_status END)::text) || '}' AS base) b
    WHERE r.source = 'transitions' AND (r.removed_at IS NULL OR m.first_at <= r.removed_at)
      AND (r.match = '{}'
           OR ((r.match -> 'campaign_id' IS NULL OR r.match -> 'campaign_id' ? m.campaign)
               AND (r.match -> 'org_id' IS NULL OR r.match -> 'org_id' ? m.org)
               AND (r.match -> 'prev_status' IS NULL OR r.match -> 'prev_status' ? e.prev_status)
               AND (r.match -> 'status' IS NULL
                    OR e.entered && ARRAY(SELECT jsonb_array_elements_text(r.match -> 'status')))
               AND (r.match -> 'flags' IS NULL OR e.flags && ARRAY(SELECT jsonb_array_elements_text(r.match -> 'flags')))
               AND (r.columns = '{}'
                    OR NOT EXISTS (SELECT FROM unnest(r.columns) AS w (name)
                                   WHERE r.match -> ('inbox.' || w.name) IS NOT NULL
                                     AND NOT COALESCE(r.match -> ('inbox.' || w.name) ? (m.columns ->> w.name), false)))))
)
