-- From here on everything is per group: messages of a batch share campaigns, transitions and signatures.
changed AS MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained, u.signature, count(*)::int4 AS n
    FROM u GROUP BY u.campaign, u.old, u.new, u.gained, u.signature
)
