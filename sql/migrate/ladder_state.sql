-- Is the stored ladder the configured one? $1 … $9 array literals in the order of ladder_fill.sql, $10 text ladder
-- hash. Columns: filled (there is a ladder), same, extends (it has all that is stored and more: rows and daemons with
-- the stored one stay right). Column pins: topics that are pinned to another ladder. Where the stored one is
-- extended: to another than the stored one.
WITH
configured AS (
    SELECT * FROM unnest($1::int2[], $2::text[], $3::int2[], $4::bool[], $5::int2[], $6::int2[])
                  AS w (code, name, parent, terminal, flag_bit, implies)
),
stored AS (
    SELECT k.code, k.name, k.parent, k.terminal, k.flag_bit, k.implies FROM message_status_priority k
),
configured_override AS (
    SELECT * FROM unnest($7::text[], $8::text[], $9::text[]) AS w (channel, status, becomes)
),
stored_override AS (
    SELECT o.channel, o.status, o.becomes FROM status_override o
),
-- A daemon with the stored ladder must read the same out of an event as before: a new override names a status or a
-- result that the stored ladder lacks.
extension AS (
    SELECT NOT EXISTS (SELECT code, name, parent, flag_bit, implies FROM stored
                       EXCEPT SELECT code, name, parent, flag_bit, implies FROM configured)
           AND EXISTS (SELECT name FROM configured EXCEPT SELECT name FROM stored)
           AND NOT EXISTS (SELECT * FROM stored_override EXCEPT SELECT * FROM configured_override)
           AND NOT EXISTS (SELECT FROM (SELECT * FROM configured_override EXCEPT SELECT * FROM stored_override) fresh
                           WHERE fresh.status IN (SELECT name FROM stored)
                             AND fresh.becomes IN (SELECT name FROM stored)) AS extends
)
SELECT EXISTS (SELECT FROM stored) AS filled,
       NOT EXISTS (SELECT * FROM configured EXCEPT SELECT * FROM stored)
           AND NOT EXISTS (SELECT * FROM stored EXCEPT SELECT * FROM configured)
           AND NOT EXISTS (SELECT * FROM configured_override EXCEPT SELECT * FROM stored_override)
           AND NOT EXISTS (SELECT * FROM stored_override EXCEPT SELECT * FROM configured_override) AS same,
       x.extends,
       (SELECT count(*) FROM consumer_topic t
        WHERE t.ladder_hash <> $10::text
          AND NOT (x.extends AND t.ladder_hash IN (SELECT l.hash FROM status_ladder l))) AS pins
FROM extension x;
