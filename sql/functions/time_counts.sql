-- What a row of message_time counts as: the cells of campaign_tally that have it. Buckets as of time_bucket(). The status is the later one's.
CREATE OR REPLACE FUNCTION time_counts(campaign_id text, gateway text, deliver int2, open int2)
RETURNS TABLE (kind text, campaign text, key text, status int2) LANGUAGE sql STABLE AS $$
    SELECT v.kind, v.campaign, v.key, (SELECT p.code FROM message_status_priority p WHERE p.name = v.name)
    FROM (VALUES ('time_to_deliver', time_counts.campaign_id, time_key(deliver), 'DELIVERED', deliver),
                 ('time_to_open', time_counts.campaign_id, time_key(open), 'OPENED', open),
                 ('gateway_time_to_deliver', '', COALESCE(time_counts.gateway, '') || '/' || time_key(deliver), 'DELIVERED', deliver),
                 ('gateway_time_to_open', '', COALESCE(time_counts.gateway, '') || '/' || time_key(open), 'OPENED', open)) v (kind, campaign, key, name, bucket)
    WHERE v.bucket IS NOT NULL
$$;
