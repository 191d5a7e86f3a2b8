-- Deletes dead letters that letters_fetch.sql has read and books them: $1 tid[] their places, $2 int8 the erasure. A
-- place keeps its row while the cursor is open. Returns rows.
WITH gone AS (
    DELETE FROM dead_letter d WHERE d.ctid = ANY ($1::tid[]) RETURNING 1
),
booked AS (
    UPDATE erasure e SET letters = e.letters + (SELECT count(*) FROM gone) WHERE e.id = $2::int8
)
SELECT count(*) AS rows FROM gone;
