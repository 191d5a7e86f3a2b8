-- The content of the default partition. Variables: schema, other (its name). Parameters: $1 text pattern of ids, $2
-- text lower bound of the first partition, $3 text upper bound of the last, $4 text up to where partitions are made.
-- Columns: rows; below and above: messages with ids of this pattern that come before the first partition, or after
-- the last and not beyond $4. Columns least, the least id of those below, and example: an id of another pattern
-- (NULL: there is none).
SELECT count(*) AS rows, count(*) FILTER (WHERE o.place = 'below') AS below,
       count(*) FILTER (WHERE o.place = 'above') AS above,
       min(o.id) FILTER (WHERE o.place = 'below') AS least, 
       COALESCE(min(o.id) FILTER (WHERE o.id !~ $1::text), min(o.id) FILTER (WHERE o.place IS NULL)) AS example
FROM (SELECT m.message_id AS id, CASE WHEN m.message_id !~ $1::text THEN NULL
                                      WHEN m.message_id < $2::text COLLATE "C" THEN 'below'
                                      WHEN m.message_id >= $3::text COLLATE "C" AND m.message_id < $4::text COLLATE "C"
                                      THEN 'above' END AS place
      FROM :"schema".:"other" m) o;
