-- Removes what suppresses a person at this moment: $1 text organisation, $2 text person, $3 text reason, $4 text by
-- whom. A transition that commits later suppresses again. Returns rows, how many.
WITH gone AS (
    UPDATE suppression s SET removed_at = now(), removed_because = $3::text, removed_by = $4::text
    WHERE s.key = suppression_key($1::text, $2::text) AND s.removed_at IS NULL
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
