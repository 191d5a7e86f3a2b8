-- The first time from now_at on at which a window is open (opens), or is not: now_at itself if it is so then.
--
-- zone: whose wall clock counts. from_second, till_second: of the day; a window that ends before it begins ends on the
-- next day. days: of its opening, 1 (Monday) to 7; NULL: every day. An end is looked for over one day at most, since a
-- window may have none.
--
-- Only the wall clock counts. An hour that comes twice is open twice. A window that opens in an hour that is left out
-- opens when the clock has jumped; one that lies in it altogether does not open on that day.
CREATE OR REPLACE FUNCTION action_turns(now_at timestamptz, zone text, from_second int4, till_second int4, days int4[],
                                        opens boolean)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    at timestamptz := now_at;
    later timestamptz;
    middle timestamptz;
    wall timestamp;
    ahead interval; -- of the clock, to UTC
    second float8;
    turn int4;
    is_open boolean;
BEGIN
    FOR i IN 1 .. 100 LOOP -- three steps a day: four weeks and more
        wall := at AT TIME ZONE zone;
        ahead := wall - (at AT TIME ZONE 'UTC');
        second := extract(epoch FROM wall - date_trunc('day', wall));
        is_open := CASE WHEN from_second < till_second OR second >= from_second
                        THEN second >= from_second AND (second < till_second OR from_second > till_second)
                             AND COALESCE(extract(isodow FROM wall)::int4 = ANY (days), true)
                        ELSE second < till_second
                             AND COALESCE(extract(isodow FROM wall - interval '24 hours')::int4 = ANY (days), true) END;
        EXIT WHEN is_open = opens OR NOT opens AND at >= now_at + interval '24 hours';
        -- Nothing changes before the next of these, unless the clock jumps. Then it is checked again from the jump on.
        turn := LEAST(CASE WHEN second < from_second THEN from_second END,
                      CASE WHEN second < till_second THEN till_second END, 86400);
        later := at + interval '1 second' * (turn - second);
        IF (later AT TIME ZONE zone) - (later AT TIME ZONE 'UTC') <> ahead THEN
            WHILE later - at > interval '1 second' LOOP
                middle := at + (later - at) / 2;
                IF (middle AT TIME ZONE zone) - (middle AT TIME ZONE 'UTC') = ahead THEN
                    at := middle;
                ELSE
                    later := middle;
                END IF;
            END LOOP;
            later := date_trunc('second', later);
        END IF;
        at := later;
    END LOOP;
    RETURN at;
END
$$;
