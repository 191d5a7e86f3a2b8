-- What a row of message_time counts as: the cells of campaign_tally that have it. Buckets as of time_bucket(). The status is the later one's. A plain query,
-- so that it becomes part of the statement that asks; and no VALUES, whose expressions PostgreSQL prepares anew for each row.
CREATE OR REPLACE FUNCTION time_counts(campaign_id text, gateway text, deliver int2, open int2)
RETURNS TABLE (kind text, campaign text, key text, status int2) LANGUAGE sql STABLE AS $$
    SELECT 'time_to_deliver', time_counts.campaign_id, time_key(deliver), (SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED')
    WHERE deliver IS NOT NULL
    UNION ALL
    SELECT 'gateway_time_to_deliver', '', COALESCE(time_counts.gateway, '') || '/' || time_key(deliver),
           (SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED')
    WHERE deliver IS NOT NULL
    UNION ALL
    SELECT 'time_to_open', time_counts.campaign_id, time_key(open), (SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED')
    WHERE open IS NOT NULL
    UNION ALL
    SELECT 'gateway_time_to_open', '', COALESCE(time_counts.gateway, '') || '/' || time_key(open),
           (SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED')
    WHERE open IS NOT NULL
$$;
