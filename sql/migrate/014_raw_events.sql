-- Version 14: a batch of receipts is sent without its raw events as long as all messages are known, for only what is parked
-- or becomes a dead letter needs them. Only a function: instances of the version before go on beside this one.

-- RD004 ends the transaction of a batch (sql/lane/apply.sql) that names an unknown message and came without its raw events.
CREATE FUNCTION raw_events_wanted() RETURNS int8 LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'RD004', MESSAGE = 'a message is unknown: the raw events of the batch are needed';
END
$$;

INSERT INTO schema_version (version) VALUES (14);
