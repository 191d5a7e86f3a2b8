-- Rows of suppression, and whether they suppress their person (suppresses): those that are not removed, soft ones only
-- where enough of them follow within their time. A condition on the key reaches the index.
CREATE OR REPLACE VIEW suppression_state AS
SELECT s.*,
       s.removed_at IS NULL AND (s.soft_count IS NULL OR COALESCE(
           lead(s.since, s.soft_count - 1) OVER (PARTITION BY s.key, s.removed_at IS NULL, s.soft_count IS NULL
                                                 ORDER BY s.since) <= s.since + s.soft_within, false)) AS suppresses
FROM suppression s;
