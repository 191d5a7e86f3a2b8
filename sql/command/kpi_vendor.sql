-- The parts of a vendor's KPIs: $1 text vendor. One row for each (KPI, part of the fraction, status), in the order of
-- the definitions. Columns: kpi, is_numerator, subtracted, status, measure, machines, source, missing. `missing` says
-- why the KPI has no figure, because of its definition or of the ladder; its status may then be NULL.
WITH term AS (
    SELECT d.place, s.is_numerator, ltrim(t.name, '-') AS name, t.name LIKE '-%' AS subtracted, k.code,
           CASE WHEN k.flag_bit IS NULL THEN k.code ELSE k.implies END AS stands
    FROM kpi_definition d
    CROSS JOIN LATERAL (VALUES (true, d.numerator), (false, d.denominator)) s (is_numerator, names)
    CROSS JOIN LATERAL unnest(s.names) t (name)
    LEFT JOIN message_status_priority k ON k.name = ltrim(t.name, '-')
    WHERE d.vendor = $1::text
),
-- Flaws of a share. Statuses above must also be below, subtracted ones must be in it, and none may be added twice.
flaw AS (
    SELECT t.place, 'the ladder has no ' || t.name AS because FROM term t WHERE t.code IS NULL
    UNION ALL
    SELECT t.place, format('in this ladder %s is not below %s', t.name, w.names)
    FROM term t
    CROSS JOIN LATERAL (
        SELECT string_agg(o.name, ' or ' ORDER BY o.name) AS names, bool_or(p.code IS NOT NULL) AS below
        FROM term o LEFT JOIN status_path p ON p.code = t.stands AND p.ancestor = o.code
        WHERE o.place = t.place AND o.is_numerator = (t.is_numerator AND t.subtracted) AND NOT o.subtracted
    ) w
    WHERE t.code IS NOT NULL AND (t.is_numerator OR t.subtracted) AND NOT w.below
    UNION ALL
    SELECT t.place, format('in this ladder %s is below %s', t.name, o.name)
    FROM term t
    JOIN term o ON o.place = t.place AND o.is_numerator = t.is_numerator AND o.subtracted = t.subtracted
        AND o.name <> t.name
    JOIN status_path p ON p.code = t.code AND p.ancestor = o.code
)
SELECT d.kpi, COALESCE(t.is_numerator, true) AS is_numerator,
       COALESCE(t.subtracted, false) AS subtracted, t.code AS status,
       CASE WHEN t.is_numerator OR d.measure = 'customers' THEN d.measure ELSE 'messages' END AS measure,
       d.machines, d.source,
       COALESCE(d.missing, (SELECT min(f.because) FROM flaw f WHERE f.place = d.place)) AS missing
FROM kpi_definition d LEFT JOIN term t ON t.place = d.place
WHERE d.vendor = $1::text
ORDER BY d.place, t.is_numerator, t.code;
