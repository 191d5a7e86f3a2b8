-- Moves events into open groups, after fence.sql. Only the owner of shard 0 does this, for the groups of all shards.
-- The files of this folder, joined in their order, are the statement; `receiptd generate sql` prints it.
--
-- Sums of transitions come from the publisher, which has read them (events.sql) and summed them up in its memory.
-- Parameter $1 int8[]: the rows that the sums stem from, which are deleted. Keys of the sums, one entry each: $2
-- text[] orgs, $3 text[] campaigns, $4 int2[] old, $5 int2[] new, $6 int4[] gained, $7 text[] columns (JSON or NULL).
-- Sums: $8 int8[] transitions, $9 int8[] first and $10 int8[] last (microseconds since 1970), $11 text[] a
-- traceparent or NULL, $12 int8[] first and $13 int8[] last row of fold_event, by its id. Parameter
-- $14 int4: the entry (1-based) from which on the answer says which groups they belong to. An entry of 0 transitions
-- only asks that.
--
-- Rows of topics are taken here, in the order of their events: $15 int4 rows at most, $16 int8 entries in them at
-- most (one row comes even above it). The limits bound the transaction after an outage, too. Parameter $17 int8:
-- afterwards groups hold everything up to this time (microseconds since 1970), unless rows of topics are left. NULL:
-- they do not. Groups are written in one order, because publishers of other shards close them meanwhile.
WITH
gone AS (
    DELETE FROM fold_event e WHERE e.id = ANY ($1::int8[]) RETURNING 1
),
taken AS MATERIALIZED (
    DELETE FROM fold_event e
    WHERE e.id = ANY (ARRAY(
        SELECT q.id
        FROM (SELECT p.id, sum(p.size) OVER (ORDER BY p.id) - p.size AS before
              FROM (SELECT f.id, f.size FROM fold_event f
                    WHERE f.rules IS NOT NULL
                    ORDER BY f.id LIMIT $15::int4) p) q
        WHERE q.before < $16::int8))
    RETURNING e.*
)
