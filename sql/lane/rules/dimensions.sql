-- Rule: the funnel by the values of columns of the message (counters.by), by the same steps as the funnel, so that the sum over all keys is the funnel.
-- It reads no single receipts: valued (45_dimensions.sql) is in groups, with the values as one array. A cell may be appended several times: the roll-up
-- and the view add up. Variable: dimension_kinds, an array of what the values are.
, dimensions AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT k.kind, a.campaign, a.at, a.key, a.code, a.messages, a.events
    FROM unnest(:'dimension_kinds'::text[]) WITH ORDINALITY AS k (kind, n),
         LATERAL (SELECT array_agg(v.campaign) AS campaign, array_agg('-infinity'::timestamptz) AS at, array_agg(dimension_key(v.dims[k.n::int4])) AS key,
                         array_agg(v.code) AS code, array_agg(v.messages::int8) AS messages, array_agg(v.events::int8) AS events
                  FROM revalued v HAVING count(*) > 0) a
)
