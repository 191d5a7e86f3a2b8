-- Appends the messages whose place in the histograms of times is new: one row of arrays.
-- $1 text[] campaigns, $2 text[] first
-- gateways, $3 int2[] buckets of the time to deliver and $4 int2[] to open (NULL: not known). Of those that had
-- a place before: $5 text[] campaigns, $6 text[] that place (time_place()); both empty: none had.
INSERT INTO campaign_time_delta (campaign_id, gateway, deliver, open, left_campaign_id, left_place)
VALUES ($1::text[], $2::text[], $3::int2[], $4::int2[], NULLIF($5::text[], '{}'), NULLIF($6::text[], '{}'));
