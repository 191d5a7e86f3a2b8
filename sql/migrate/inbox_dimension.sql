-- A column of our own inbox by which messages are counted (counters.by), without rewriting the table. Variables:
-- column.
ALTER TABLE message_inbox ADD COLUMN IF NOT EXISTS :"column" text COLLATE "C";
