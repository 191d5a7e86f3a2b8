-- The minute of the series in which something counts, of a minute since 1970: an hour ahead of this server at most. A
-- plain expression, as bounded_time().
CREATE OR REPLACE FUNCTION bounded_minute(minute int8) RETURNS int8 LANGUAGE sql STABLE AS $$
    SELECT LEAST(minute, floor(date_part('epoch', now()) / 60)::int8 + 60)
$$;
