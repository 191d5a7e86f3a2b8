-- Rule: the funnel by the values of columns of the message (counters.by), by the same steps as the funnel, so that the
-- sum over all keys is the funnel. It reads no single receipts: cells (../apply/31_dimensions.sql) are arrays already.
-- A cell may be appended several times: the roll-up and the view add up. Variable: dimension_kinds, an array of what
-- the values are.
, dimensions AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT k.kind, c.campaign, array_fill('-infinity'::timestamptz, ARRAY[cardinality(c.campaign)]), CASE k.n WHEN 1 THEN c.key_1 WHEN 2 THEN c.key_2 ELSE c.key_3 END,
           c.code, c.messages, c.events
    FROM unnest(:'dimension_kinds'::text[]) WITH ORDINALITY AS k (kind, n), (SELECT * FROM cells UNION ALL SELECT * FROM echo_cells) c
)
