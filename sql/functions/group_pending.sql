-- What the deltas of groups that are not folded yet add to their counters: for the view group_funnel, which anybody may
-- ask whatever search_path is set: so this function brings its own. Returns campaign_id, kind, code and delta, several
-- rows for each.
CREATE OR REPLACE FUNCTION group_pending() RETURNS TABLE (campaign_id text, kind text, code int2, delta int4)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT m.campaign_id, m.kind, d.code, d.delta
    FROM groups_merged(ARRAY(SELECT d.id FROM group_delta d)) m CROSS JOIN LATERAL group_steps(m.was, m.had, m.status, m.flags) d
$$;
