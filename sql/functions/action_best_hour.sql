-- A window that begins at somebody's best hour: as given where hour, a text, is no hour of 0 to 23, or lies outside.
-- from_second, till_second, days: see action_turns(). An hour behind midnight belongs to the window of the day before.
CREATE OR REPLACE FUNCTION action_best_hour(from_second int4, till_second int4, days int4[], hour text,
                                            OUT best_second int4, OUT best_days int4[])
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    second int4 := CASE WHEN hour ~ '^([01]?[0-9]|2[0-3])$' THEN hour::int4 * 3600 END;
BEGIN
    best_second := from_second;
    best_days := days;
    IF second >= from_second AND (second < till_second OR from_second > till_second) THEN
        best_second := second;
    ELSIF second < till_second AND from_second > till_second THEN
        best_second := second;
        best_days := CASE WHEN days IS NOT NULL THEN ARRAY(SELECT d % 7 + 1 FROM unnest(days) d) END;
    END IF;
END
$$;
