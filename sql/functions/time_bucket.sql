-- The bucket of the time from one first time of a message to another: as delay_bucket(); -1: the later one comes first, which clocks of gateways do;
-- NULL: one of them is not known.
CREATE OR REPLACE FUNCTION time_bucket(earlier timestamptz, later timestamptz) RETURNS int2 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN later < earlier THEN -1::int2 ELSE LEAST(79, ceil(ln(GREATEST(1, date_part('epoch', later - earlier) * 1000)) * (2 / ln(2::float8))))::int2 END
    WHERE earlier IS NOT NULL AND later IS NOT NULL
$$;
