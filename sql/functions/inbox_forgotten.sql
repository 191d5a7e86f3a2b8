-- The statement, as text, that books the counts of departing messages in the histograms of times (counters.times).
-- Their counts stay, and the same counts as kinds forgotten_… say that no row has them any longer. '' where the table
-- base lacks the columns.
--
-- of_rows: where the rows come from, as SQL; campaign_id, status: the columns there. Only delivered messages count in
-- the time to deliver (src/core/rules/times.c).
CREATE OR REPLACE FUNCTION inbox_forgotten(base oid, of_rows text, campaign_id text, status text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN inbox_has_times(base) THEN format($statement$
            INSERT INTO counter_delta (kind, campaign_id, key, status, messages, events)
            SELECT 'forgotten_' || s.kind, array_agg(s.campaign), array_agg(s.key),
                   array_agg(s.status), array_agg(s.n), array_agg(0::int8)
            FROM (SELECT c.kind, c.campaign, c.key, c.status, sum(g.n)::int8 AS n
                  FROM (SELECT COALESCE(r.%2$I::text COLLATE "C", '') AS campaign,
                               time_place(r.first_gateway,
                                          CASE WHEN r.%3$I IN (SELECT p.code
                                                               FROM status_path p
                                                               JOIN message_status_priority d ON d.code = p.ancestor
                                                               WHERE d.name = 'DELIVERED') THEN r.first_sent_at END,
                                          r.first_delivered_at, r.first_opened_at) AS place, count(*) AS n
                        FROM %1$s r
                        WHERE time_place(r.first_gateway, r.first_sent_at,
                                         r.first_delivered_at, r.first_opened_at) IS NOT NULL
                        GROUP BY 1, 2) g
                  CROSS JOIN LATERAL time_counts(g.campaign, g.place) c
                  GROUP BY 1, 2, 3, 4) s
            GROUP BY s.kind;$statement$, of_rows, campaign_id, status) ELSE '' END
$$;
