-- The columns of our own inbox by which ranges find their messages, and the index over them; a row without a person is
-- not in it. Writers wait while it is made. Variables: range_recipient, range_account, range_sent.
ALTER TABLE message_inbox
    ADD COLUMN IF NOT EXISTS :"range_recipient" text COLLATE "C",
    ADD COLUMN IF NOT EXISTS :"range_account" text COLLATE "C",
    ADD COLUMN IF NOT EXISTS :"range_sent" timestamptz;
DROP INDEX IF EXISTS message_inbox_recipient;
CREATE INDEX message_inbox_recipient ON message_inbox (:"range_recipient", :"range_account", :"range_sent", message_id)
    WHERE :"range_recipient" IS NOT NULL;
