-- The topic was made again: what waits of its former records makes way for records with the same offsets. $1 text
-- topic, $2 int4 partition; after positions_set.sql. Their offsets become negative, by a distance of this generation's
-- own. Returns rows.
WITH
distance AS (SELECT t.generation << 40 AS by FROM consumer_topic t WHERE t.topic = $1::text),
parked AS (
    DELETE FROM parked_event e
    WHERE e.topic = $1::text AND e.partition = $2::int4 AND e."offset" >= 0
    RETURNING e AS one
),
letters AS (
    DELETE FROM dead_letter d WHERE d.topic = $1::text AND d.partition = $2::int4 AND d."offset" >= 0 RETURNING d AS one
),
parked_again AS (
    INSERT INTO parked_event
    SELECT (jsonb_populate_record(one, jsonb_build_object('offset', (one)."offset" - by))).* FROM parked, distance
    RETURNING 1
),
letters_again AS (
    INSERT INTO dead_letter
    SELECT (jsonb_populate_record(one, jsonb_build_object('offset', (one)."offset" - by))).* FROM letters, distance
    RETURNING 1
)
SELECT (SELECT count(*) FROM parked_again) + (SELECT count(*) FROM letters_again) AS rows;
