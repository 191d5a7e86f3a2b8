-- The last walk of `receiptd maintain` that reached its end, if it was within a day: ended. An hour less, or a timer
-- that comes some minutes earlier than yesterday would miss a day. No row: a walk is due.
SELECT to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS ended
FROM maintained WHERE task = 'walk' AND ended_at > now() - interval '23 hours'
