-- Rates that are none in the ladder of the database: columns kpi and because.
SELECT k.kpi, k.because FROM kpi_part k WHERE k.part = 'undefined' ORDER BY k.kpi;
