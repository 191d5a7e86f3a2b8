-- In place of 31_delta.sql behind 31_dimensions.sql. The sum over all values is the funnel, so its delta has the same
-- cells, a campaign and status several times.
, delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events) SELECT c.campaign, c.code, c.messages, c.events FROM cells c
)
