-- The logarithmic bucket of a delay, 0 … 79: bucket b holds those up to 2^(b/2) ms that are in none before. Bucket 0
-- holds also what is negative.
CREATE OR REPLACE FUNCTION delay_bucket(delay interval) RETURNS int2 LANGUAGE sql IMMUTABLE AS $$
    SELECT LEAST(79, ceil(ln(GREATEST(1, date_part('epoch', delay) * 1000)) * (2 / ln(2::float8))))::int2
$$;
