-- For how long deltas wait: whether one waits whose id is above the odd parameter and at most the even one, and the
-- last id that was given, for each of the four tables. $1, $2 int8: campaign_funnel_delta; $3, $4:
-- campaign_tally_delta; $5, $6: campaign_time_delta; $7, $8: group_delta. Rows in this order: n, waits, last. The lower
-- bound keeps the scan away from rows that went long ago and that an open snapshot keeps from being removed.
SELECT 0 AS n, EXISTS (SELECT FROM campaign_funnel_delta d WHERE d.id > $1::int8 AND d.id <= $2::int8) AS waits, COALESCE(pg_sequence_last_value('campaign_funnel_delta_id_seq'), 0) AS last
UNION ALL
SELECT 1, EXISTS (SELECT FROM campaign_tally_delta d WHERE d.id > $3::int8 AND d.id <= $4::int8), COALESCE(pg_sequence_last_value('campaign_tally_delta_id_seq'), 0)
UNION ALL
SELECT 2, EXISTS (SELECT FROM campaign_time_delta d WHERE d.id > $5::int8 AND d.id <= $6::int8), COALESCE(pg_sequence_last_value('campaign_time_delta_id_seq'), 0)
UNION ALL
SELECT 3, EXISTS (SELECT FROM group_delta d WHERE d.id > $7::int8 AND d.id <= $8::int8), COALESCE(pg_sequence_last_value('group_delta_id_seq'), 0)
ORDER BY n;
