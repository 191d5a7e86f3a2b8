-- Erases some messages and books that in the record: $1 text[] ids, $2 text customer and $3 text the column of customers (NULL: none), $4 int8
-- the erasure. Returns how many rows of what went.
WITH gone AS MATERIALIZED (
    SELECT * FROM erase_messages($1::text[], $2::text, $3::text)
),
booked AS (
    UPDATE erasure e
    SET messages = e.messages + g.messages, parked = e.parked + g.parked, letters = e.letters + g.letters,
        timeline = e.timeline + g.timeline, aliases = e.aliases + g.aliases, runs = e.runs + g.runs, folds = e.folds + g.folds
    FROM gone g WHERE e.id = $4::int8
)
SELECT g.messages, g.parked, g.letters, g.timeline, g.aliases, g.runs, g.folds FROM gone g;
