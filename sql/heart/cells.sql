-- What a batch has counted: one row of arrays, as src/core/count.c gives them. $1 text[] campaigns, $2 int2[] codes, $3
-- int8[] messages, $4 int8[] receipts.
INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events) VALUES ($1::text[], $2::int2[], $3::int8[], $4::int8[]);
