-- Notes the bounds that a table is to get as a partition: from now on a new row has to fit. Rows that are there must
-- fit already, or nothing is noted: a check that one of them failed would refuse its receipts. The lock keeps all
-- writers out meanwhile. Variables: other (its name), lower, upper. Raises 23514 where a row does not fit.
LOCK TABLE ONLY :"other" IN ACCESS EXCLUSIVE MODE;
SELECT set_config('receiptd.part', :'other', true), set_config('receiptd.lower', :'lower', true),
       set_config('receiptd.upper', :'upper', true);
DO $$
DECLARE
    part text DEFAULT current_setting('receiptd.part');
    least text;
    most text;
BEGIN
    -- Each of min and max is one look into the index of the key.
    EXECUTE format('SELECT min(message_id), max(message_id) FROM ONLY %I', part) INTO least, most;
    IF least < current_setting('receiptd.lower') COLLATE "C"
       OR most >= current_setting('receiptd.upper') COLLATE "C" THEN
        RAISE EXCEPTION USING ERRCODE = '23514',
            MESSAGE = format('%s has messages from %s to %s, and is to be the partition from %s to %s',
                             part, least, most, current_setting('receiptd.lower'), current_setting('receiptd.upper'));
    END IF;
END
$$;
ALTER TABLE :"other" ADD CONSTRAINT receiptd_bounds CHECK (message_id >= :'lower' AND message_id < :'upper') NOT VALID;
