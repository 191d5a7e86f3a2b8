-- The bucket of the time from one first time of a message to another, as delay_bucket(). NULL: one of them is not
-- known. -1: the later one comes first, which happens with the clocks of gateways. A plain expression, so that it
-- becomes part of the statement that asks: a call for each row costs far more.
CREATE OR REPLACE FUNCTION time_bucket(earlier timestamptz, later timestamptz) RETURNS int2 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN earlier IS NULL OR later IS NULL THEN NULL WHEN later < earlier THEN -1::int2
                ELSE LEAST(79,
                           ceil(ln(GREATEST(1,
                                            date_part('epoch',
                                                      later - earlier) * 1000)) * (2 / ln(2::float8))))::int2 END
$$;
