-- The same for the readers of topics, whose fence compares positions alone: $1 text reader (folds, actions,
-- messages), $2 text topic, $3 int4 partition, $4 int8 offset, $5 int8 the position before. Returns rows: 0 if it has
-- moved meanwhile.
WITH
folds AS (
    UPDATE fold_progress SET next_offset = $4::int8
    WHERE $1::text = 'folds' AND topic = $2::text AND partition = $3::int4 AND next_offset = $5::int8 RETURNING 1
),
actions AS (
    UPDATE action_progress SET next_offset = $4::int8
    WHERE $1::text = 'actions' AND topic = $2::text AND partition = $3::int4 AND next_offset = $5::int8 RETURNING 1
),
messages AS (
    UPDATE message_progress SET next_offset = $4::int8
    WHERE $1::text = 'messages' AND topic = $2::text AND partition = $3::int4 AND next_offset = $5::int8 RETURNING 1
)
SELECT (SELECT count(*) FROM folds) + (SELECT count(*) FROM actions) + (SELECT count(*) FROM messages) AS rows;
