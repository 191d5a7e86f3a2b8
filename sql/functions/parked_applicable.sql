-- Where the first parked receipts of these pairs are whose message exists by now, pair by pair in the order of their
-- positions; with the message's campaign and organisation (NULL: none). Where two rows have its id, in partitions by
-- time, that one counts whose organisation the receipt names. A plain query, so that it becomes
-- part of the statement that asks.
--
-- A scalar subquery is always a lookup by key for each row; a join here would sooner or later be planned as a scan of
-- the whole inbox. Each pair gives its first rows in the order of the index; the outer limit keeps to the order of all.
CREATE OR REPLACE FUNCTION parked_applicable(topics text[], partitions int4[], of_lane int4, most int4)
RETURNS TABLE (topic text, partition int4, at_offset int8, index int4, campaign text, org text)
LANGUAGE sql STABLE AS $$
    SELECT f.*
    FROM unnest(topics, partitions) WITH ORDINALITY AS w (topic, partition, n)
    CROSS JOIN LATERAL (
        SELECT p.topic, p.partition, p."offset", p.index, c.found[1] AS campaign, c.found[2] AS org
        FROM parked_event p
        CROSS JOIN LATERAL (SELECT (SELECT ARRAY[COALESCE(m.campaign_id, '') COLLATE "C",
                                                 NULLIF(m.org_id, '') COLLATE "C"]
                                    FROM message_inbox m
                                    WHERE m.message_id = p.message_id
                                    ORDER BY p.org_id IS NULL
                                        OR COALESCE(NULLIF(m.org_id, '') = p.org_id COLLATE "C", false) DESC
                                    LIMIT 1) AS found
                            OFFSET 0) c
        WHERE p.lane = of_lane AND p.topic = w.topic AND p.partition = w.partition AND c.found IS NOT NULL
        ORDER BY p."offset", p.index
        LIMIT most
    ) f
    ORDER BY w.n, f."offset", f.index
    LIMIT most
$$;
