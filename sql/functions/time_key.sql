-- A bucket of time_bucket() as the key of counts: where it ends, in ms; 'negative'. The first two buckets end at 1.
CREATE OR REPLACE FUNCTION time_key(bucket int2) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN bucket < 0 THEN 'negative' ELSE round(power(2::float8, bucket / 2.0::float8))::int8::text END
$$;
