-- The time of an event that may be kept as a first time: an hour ahead of this server at most, since clocks of gateways
-- are wrong. NULL: it is not known, or infinity, which says the same. A plain expression, so that it becomes part of
-- the statement that asks.
CREATE OR REPLACE FUNCTION bounded_time(at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN at < 'infinity' THEN LEAST(at, now() + interval '1 hour') END
$$;
