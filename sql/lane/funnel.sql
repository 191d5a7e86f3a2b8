-- Appends what rules have counted of the funnel: one row of arrays. With the series these are all of its cells, and they
-- say in which minute. Else they take off what copies named.
-- $1 text[] campaigns, $2 int8[] minutes since 1970 (empty: the
-- series is not counted), $3 int2[] statuses, $4 int8[] messages, $5 int8[] events.
INSERT INTO campaign_funnel_delta (campaign_id, minute, status, messages, events)
VALUES ($1::text[], NULLIF($2::int8[], '{}'), $3::int2[], $4::int8[], $5::int8[]);
