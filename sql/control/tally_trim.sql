-- Deletes counts by time that are older than they are kept, or lie more than an hour ahead. Returns rows (deleted).
-- No receipt counts more than an hour ahead of the server's clock, so such a count is from before that clock was set
-- back. Parameters: $1 int8 ms of hours of the series, $2 int8 ms of hours of gateways, $3 int4 most rows. Minutes
-- are kept for a day. With $2 = 0 the rule is off here, and its counts stay: another instance may have it on.
WITH gone AS (
    DELETE FROM campaign_tally_total t
    WHERE t.ctid = ANY (ARRAY(
        SELECT o.ctid
        FROM (VALUES ('minute', 86400000), ('hour', $1::int8), ('gateway', $2::int8),
                     ('gateway_duplicate', $2::int8), ('gateway_unknown', $2::int8),
                     ('gateway_disorder', $2::int8), ('gateway_won', $2::int8),
                     ('gateway_lost', $2::int8), ('gateway_delay', $2::int8),
                     ('gateway_sent', $2::int8), ('gateway_final', $2::int8)) k (kind, keep)
        CROSS JOIN LATERAL (
            SELECT t.ctid FROM campaign_tally_total t
            WHERE t.kind = k.kind AND t.at > '-infinity' AND t.at < now() - NULLIF(k.keep, 0) * interval '1 millisecond'
            UNION ALL
            SELECT t.ctid FROM campaign_tally_total t WHERE t.kind = k.kind AND t.at > now() + interval '1 hour'
        ) o
        LIMIT $3::int4))
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
