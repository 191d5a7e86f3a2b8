-- After parent.sql, for an inbox without a message: drops the table that was the inbox. Raises 55000 where a message
-- has come meanwhile.
DO $$
BEGIN
    IF EXISTS (SELECT FROM message_inbox_before) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'a message was inserted into message_inbox while it was to be partitioned',
            HINT = 'run receiptd adopt, which partitions an inbox with messages';
    END IF;
END
$$;
DROP TABLE message_inbox_before;
