-- In place of 31_delta.sql behind 31_minutes.sql: the funnel is the sum of its minutes.
, delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg(s.campaign), array_agg(s.code), array_agg(s.messages), array_agg(s.events)
    FROM (SELECT c.campaign, c.code, sum(c.messages) AS messages, sum(c.events) AS events FROM minute_cells c GROUP BY c.campaign, c.code
          HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0) s HAVING count(*) > 0
)
