-- How long `receiptd maintain` may recount campaigns now: budget_ms, a hundredth of the time that it has not spent yet,
-- and of a day at most. The first time: of an hour.
SELECT (extract(epoch FROM LEAST(now() - COALESCE(
            (SELECT m.ended_at FROM maintained m WHERE m.task = 'proof'), now() - interval '1 hour'),
            interval '1 day')) * 10)::int8 AS budget_ms;
