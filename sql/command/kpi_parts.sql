-- The parts of the rates, ordered by rate: kpi, is_numerator, status, measure (messages, events, current or
-- customers). Rates that the ladder does not give are left out.
SELECT p.kpi, p.part = 'numerator' AS is_numerator, p.status, p.measure
FROM kpi_part p
WHERE p.kpi IN (SELECT n.kpi FROM kpi_part n WHERE n.part = 'numerator'
                INTERSECT SELECT d.kpi FROM kpi_part d WHERE d.part = 'denominator')
  AND p.part IN ('numerator', 'denominator')
ORDER BY p.kpi;
