-- Counts that the deltas of groups will add to the counters of groups when they are folded: campaign_id, kind, code
-- and delta, several rows for each. The view group_funnel calls it. Any role may ask that view, whatever its
-- search_path, so this function brings its own.
CREATE OR REPLACE FUNCTION group_pending() RETURNS TABLE (campaign_id text, kind text, code int2, delta int4)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT m.campaign_id, m.kind, d.code, d.delta
    FROM groups_merged(ARRAY(SELECT d.id FROM group_delta d)) m
    CROSS JOIN LATERAL group_steps(m.was, m.had, m.status, m.flags) d
$$;
