older AS (
    UPDATE message_inbox m
