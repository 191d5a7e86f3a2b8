-- The same UPDATE as in apply/10_update.sql, which says why it reads like this: change both.
u AS (
    UPDATE message_inbox m
