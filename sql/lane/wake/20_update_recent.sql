-- In place of 20_update.sql while the inbox has a recent set: the two stages of apply/10_recent.sql and 16_older.sql,
-- one after the other.
recent AS (
    UPDATE message_inbox m
