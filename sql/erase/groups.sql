-- The groups of an erased customer (counters.groups), after command/groups_lock.sql and when all changes are folded:
-- with the row goes what says that two of his messages were his. Counters stay. Variables: inbox_schema, inbox_table
-- and the name there of customer_id. $1 the customer's id, of the column's own type. Returns rows.
WITH person AS MATERIALIZED (
    SELECT p.id::text COLLATE "C" AS id
    FROM (SELECT t.:"customer_id" AS id FROM :"inbox_schema".:"inbox_table" t WHERE false UNION ALL SELECT $1) p
),
gone AS (
    DELETE FROM message_group g
    USING (SELECT DISTINCT c.campaign_id FROM campaign_count c) c, person p
    WHERE g.campaign_id = c.campaign_id AND g.kind = 'customer'
      AND g.key = group_key((SELECT s.salt FROM group_salt s), 'customer', c.campaign_id, p.id, '')
    RETURNING 1
)
SELECT count(*) AS rows FROM gone;
