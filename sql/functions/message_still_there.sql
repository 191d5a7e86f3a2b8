-- True. Where the message has been deleted since the statement's snapshot, 40001 ends the transaction: its receipts are
-- not counted for a message that went without them, and with a new snapshot they are late. For messages that a
-- statement has seen and not changed, though it would have. Volatile, so that each call has a snapshot of its own. A
-- mapped table may have a column id of its own.
CREATE OR REPLACE FUNCTION message_still_there(id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM message_inbox m WHERE m.message_id = message_still_there.id) THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'a message of the batch was deleted meanwhile';
END
$$;
