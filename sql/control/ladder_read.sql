-- Compares the ladder in the tables with one of a configuration. Parameters: $1 int2[] codes, $2 text[] names, $3
-- int2[] parents (-1: none), $4 int2[] what flags imply (-1: nothing). Overrides: $5 text[] channels, $6 text[]
-- statuses, $7 text[] what they become. One row: hash (NULL: there is none), extends (all of these are in the tables,
-- which may have more).
SELECT (SELECT l.hash FROM status_ladder l) AS hash,
       NOT EXISTS (SELECT *
                   FROM unnest($1::int2[], $2::text[], $3::int2[], $4::int2[]) AS w (code, name, parent, implies)
                   EXCEPT
                   SELECT k.code, k.name, COALESCE(k.parent, -1::int2), COALESCE(k.implies, -1::int2)
                   FROM message_status_priority k)
           AND NOT EXISTS (SELECT * FROM unnest($5::text[], $6::text[], $7::text[]) AS w (channel, status, becomes)
                           EXCEPT
                           SELECT o.channel, o.status, o.becomes FROM status_override o) AS extends;
