-- Pins a topic that is seen for the first time, after synchronous.sql. Returns inserted (bool). Parameters: $1 text
-- topic, $2 text cluster id, $3 int4 lanes, $4 int4 hash version, $5 text ladder hash. If two instances try it, one
-- wins; read the pins again afterwards.
WITH made AS (
    INSERT INTO consumer_topic (topic, cluster_id, lanes, hash_version, ladder_hash)
    VALUES ($1::text, $2::text, $3::int4, $4::int4, $5::text)
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) > 0 AS inserted FROM made;
