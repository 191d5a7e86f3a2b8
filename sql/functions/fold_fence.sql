-- The first statement of a publisher's transaction: it owns the shard, or raises RD001.
CREATE OR REPLACE FUNCTION fold_fence(my_lane int4, my_epoch int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fold_lane l SET ticks = l.ticks + 1 WHERE l.lane = my_lane AND l.epoch = my_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format('lane %s of folds has another owner than epoch %s',
                                                                  my_lane, my_epoch);
    END IF;
END
$$;
