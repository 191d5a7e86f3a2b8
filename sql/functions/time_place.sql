-- The place of a message with these first times in the histograms (counters.times): 'deliver/open/gateway', the
-- buckets of time_bucket() or nothing. NULL: in none. A plain expression, so that it becomes part of the statement
-- that asks.
CREATE OR REPLACE FUNCTION time_place(gateway text, sent timestamptz, delivered timestamptz, opened timestamptz)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN delivered IS NOT NULL AND (sent IS NOT NULL OR opened IS NOT NULL)
                THEN COALESCE(time_bucket(sent, delivered)::text, '') || '/'
                     || COALESCE(time_bucket(delivered, opened)::text, '') || '/' || COALESCE(gateway, '') END
$$;
