-- Replaces the ladder. Arrays of equal length for statuses and flags; likewise the three for overrides.
CREATE OR REPLACE FUNCTION ladder_fill(codes int2[], names text[], parents int2[], terminals bool[], flag_bits int2[],
                            implied int2[], channels text[], overridden text[], becoming text[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM message_status_priority;
    INSERT INTO message_status_priority (code, name, parent, priority, terminal, flag_bit, implies)
    SELECT l.code, l.name, l.parent, l.code, l.terminal, l.flag_bit, l.implies
    FROM unnest(codes, names, parents, terminals, flag_bits, implied)
         AS l (code, name, parent, terminal, flag_bit, implies);

    DELETE FROM status_path;
    INSERT INTO status_path (code, ancestor)
    WITH RECURSIVE path (code, ancestor) AS (
        SELECT k.code, k.code FROM message_status_priority k WHERE k.flag_bit IS NULL
        UNION ALL
        SELECT path.code, k.parent
        FROM path JOIN message_status_priority k ON k.code = path.ancestor
        WHERE k.parent IS NOT NULL
    )
    SELECT path.code, path.ancestor FROM path;

    DELETE FROM path_delta;
    INSERT INTO path_delta (old, new, code, delta)
    SELECT s.old, s.new, s.code, sum(s.delta)
    FROM (SELECT o.code AS old, p.code AS new, p.ancestor AS code, 1 AS delta
          FROM status_path p, message_status_priority o WHERE o.flag_bit IS NULL
          UNION ALL
          SELECT p.code, n.code, p.ancestor, -1
          FROM status_path p, message_status_priority n WHERE n.flag_bit IS NULL) s
    GROUP BY s.old, s.new, s.code
    HAVING sum(s.delta) <> 0;

    DELETE FROM status_override;
    INSERT INTO status_override (channel, status, becomes)
    SELECT o.channel, o.status, o.becomes FROM unnest(channels, overridden, becoming) AS o (channel, status, becomes);
END
$$;
