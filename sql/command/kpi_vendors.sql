-- The KPIs of the vendors as they are defined: vendor, kpi, numerator, denominator, missing, source; in the order of
-- the definitions.
SELECT d.vendor, d.kpi,
       replace(array_to_string(d.numerator, ' + '), '+ -', '- ') AS numerator,
       replace(array_to_string(d.denominator, ' + '), '+ -', '- ') AS denominator,
       d.machines, d.missing, d.source
FROM kpi_definition d
WHERE d.vendor <> ''
ORDER BY d.place;
