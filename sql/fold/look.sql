-- Is there anything to do for a lane of the publisher? $1 int4 lane, $2 int4 lanes. Returns events (bool), due (bool),
-- claimed (bool).
SELECT EXISTS (SELECT FROM fold_event e
               WHERE (CASE WHEN e.rules IS NULL THEN e.id / 64 % $2::int4 ELSE 0 END) = $1::int4) AS events,
       EXISTS (SELECT FROM fold_group g WHERE g.lane = $1::int4 AND g.due_at <= now()) AS due,
       EXISTS (SELECT FROM fold_outbox o WHERE o.lane = $1::int4) AS claimed;
