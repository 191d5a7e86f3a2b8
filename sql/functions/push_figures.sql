-- The KPI of each variant of a split, exact at this moment: deltas that are not rolled up count, too. No row: the rule
-- has no KPI. OPENED and CLICKED are those of persons, since check-config refuses a KPI in which machines count.
-- rule: column push.rule. stage: in the order nth of the variants. denominator: 0 if nothing was counted.
CREATE OR REPLACE FUNCTION push_figures(rule jsonb)
RETURNS TABLE (stage text, nth int8, numerator int8, denominator int8) LANGUAGE sql STABLE AS $$
    WITH t AS MATERIALIZED (
        SELECT c.key, k.part, sum(CASE k.measure WHEN 'events' THEN GREATEST(c.events, c.messages)
                                                 ELSE c.messages END)::int8 AS n
        FROM campaign_tally c
        JOIN kpi_part k ON k.status = c.status
        WHERE c.campaign_id = rule ->> 'campaign' AND c.kind = 'by_' || (rule ->> 'by') AND k.kpi = rule ->> 'kpi'
        GROUP BY c.key, k.part
    )
    SELECT v.one ->> 'stage', v.n, COALESCE(sum(t.n) FILTER (WHERE t.part = 'numerator'), 0)::int8,
           COALESCE(sum(t.n) FILTER (WHERE t.part = 'denominator'), 0)::int8
    FROM jsonb_array_elements(rule -> 'variants') WITH ORDINALITY AS v (one, n)
    LEFT JOIN t ON t.key = v.one ->> 'stage'
    WHERE rule ->> 'kpi' IS NOT NULL
    GROUP BY v.n, v.one
    ORDER BY v.n
$$;
