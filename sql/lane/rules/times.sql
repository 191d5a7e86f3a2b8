-- Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign and gateway. The
-- UPDATE keeps a message's first times in its row (../apply/11_set_times.sql), so neither the order of receipts nor
-- copies change them. A time that gets earlier moves the message from one bucket to another: its place before comes
-- from the same UPDATE, never from a join (../apply/10_update.sql says why). Here the messages whose place is new are
-- appended; the roll-up makes cells of them (control/rollup_times.sql).
, times AS (
    INSERT INTO campaign_time_delta (campaign_id, gateway, deliver, open, left_campaign_id, left_place)
    SELECT array_agg(u.campaign), array_agg(COALESCE(u.first_gateway, '')), array_agg(u.deliver), array_agg(u.open),
           array_agg(u.campaign) FILTER (WHERE u.was IS NOT NULL), array_agg(u.was) FILTER (WHERE u.was IS NOT NULL)
    FROM u
    WHERE (u.deliver IS NOT NULL OR u.open IS NOT NULL)
      AND (u.was IS NULL OR u.was <> COALESCE(u.deliver::text, '') || '/' || COALESCE(u.open::text, '') || '/' || COALESCE(u.first_gateway, ''))
    HAVING count(*) > 0
)
