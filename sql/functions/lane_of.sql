-- The lane of a text among n, from 0: a worker that takes one lane never meets another. For the platform's own
-- senders; with n = lanes it is the lane of a message in the daemon. Raises 22023 where n is below 1.
CREATE OR REPLACE FUNCTION lane_of(id text, n integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF n < 1 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('lane_of: %s lanes cannot share work', n),
            HINT = 'give the number of workers as the second argument: 1 or more';
    END IF;
    -- The remainder of a negative hash is negative.
    RETURN (hashtextextended(id, 0) % n + n) % n;
END
$$;
