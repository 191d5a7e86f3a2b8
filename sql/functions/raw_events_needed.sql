-- RD004 ends the transaction of a batch (sql/lane/apply) that names an unknown message and came without its raw events.
CREATE OR REPLACE FUNCTION raw_events_needed() RETURNS int8 LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'RD004', MESSAGE = 'a message is unknown: the raw events of the batch are needed';
END
$$;
