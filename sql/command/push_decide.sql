-- A person's decision: $1 text push, $2 text stage or nobody, $3 text by whom (NULL: the role of the session). Columns:
-- done; stages (those that may win; NULL: there is no such push); decided (who decided what, and when, before this).
WITH p AS MATERIALIZED (
    SELECT q.name, q.decided_at, q.winner, q.decided_by,
           ARRAY(SELECT v ->> 'stage' FROM jsonb_array_elements(q.rule -> 'variants') v) AS stages
    FROM push q WHERE q.name = $1::text
    FOR UPDATE
),
d AS MATERIALIZED (
    SELECT push_decide(p.name, NULLIF($2::text, 'nobody'), COALESCE($3::text, session_user::text),
                       clock_timestamp()) AS done
    FROM p WHERE p.decided_at IS NULL AND ($2::text = 'nobody' OR $2::text = ANY (p.stages))
)
SELECT COALESCE((SELECT d.done FROM d), false) AS done,
       (SELECT array_to_string(p.stages, ', ') FROM p) AS stages,
       (SELECT format('%s by %s at %s', COALESCE(p.winner, 'nobody'), p.decided_by,
                      to_char(p.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        FROM p WHERE p.decided_at IS NOT NULL) AS decided;
