-- The funnel's deltas say in which minute they count where the series is on (counters.series): the roll-up makes hours
-- and minutes of them. No variables; search_path = the schema.
ALTER TABLE campaign_funnel_delta ADD COLUMN minute bigint[]; -- since 1970-01-01 UTC; NULL: no series
