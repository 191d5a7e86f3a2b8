-- The order in which statuses count for a group of messages. The status of a group is that of its messages with the
-- largest rank, a maximum over a total order. The further stage comes first; at one stage messages that are still
-- under way come before those that have ended there; then comes the larger code. A dead end is a terminal status that
-- a larger code of another branch still corrects; its stage is its parent. So a stage is on the path of the group
-- exactly if it is on that of one of its messages.
CREATE OR REPLACE VIEW group_rank AS
SELECT p.code,
       row_number() OVER (ORDER BY CASE WHEN d.dead THEN p.parent ELSE p.code END, NOT d.dead, p.code)::int4 AS rank
FROM message_status_priority p
CROSS JOIN LATERAL (
    SELECT p.terminal AND p.parent IS NOT NULL AND EXISTS (
        SELECT FROM status_path s
        WHERE s.ancestor = p.parent AND s.code > p.code
          AND NOT EXISTS (SELECT FROM status_path o WHERE o.code = s.code AND o.ancestor = p.code)
          AND EXISTS (SELECT FROM message_status_priority q WHERE q.code = s.code AND NOT q.terminal)) AS dead
) d
WHERE p.flag_bit IS NULL;
