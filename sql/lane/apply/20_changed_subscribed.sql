changed AS MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained, u.signature, count(*)::int4 AS n, u.org, min(u.link COLLATE "C") AS link
    FROM u GROUP BY u.campaign, u.old, u.new, u.gained, u.signature, u.org
)
