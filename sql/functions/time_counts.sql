-- The cells of campaign_tally in which a message of a campaign counts that has this place (time_place()). The status is
-- the later one's.
CREATE OR REPLACE FUNCTION time_counts(of_campaign text, place text)
RETURNS TABLE (kind text, campaign text, key text, status int2) LANGUAGE sql STABLE AS $$
    SELECT c.kind, c.campaign, c.prefix || time_key(c.bucket::int2), p.code
    FROM (SELECT split_part(time_counts.place, '/', 1) AS deliver, split_part(time_counts.place, '/', 2) AS open,
                 substr(time_counts.place, length(split_part(time_counts.place, '/', 1))
                                               + length(split_part(time_counts.place, '/', 2)) + 3)
                     || '/' AS gateway) t
    CROSS JOIN LATERAL (VALUES ('time_to_deliver', time_counts.of_campaign, '', t.deliver, 'DELIVERED'),
                               ('gateway_time_to_deliver', '', t.gateway, t.deliver, 'DELIVERED'),
                               ('time_to_open', time_counts.of_campaign, '', t.open, 'OPENED'),
                               ('gateway_time_to_open', '', t.gateway, t.open, 'OPENED'))
        AS c (kind, campaign, prefix, bucket, status)
    JOIN message_status_priority p ON p.name = c.status
    WHERE c.bucket <> ''
$$;
