-- Reads the detached partition before back.sql, while no transaction changes it. Variables: part_schema, part.
ALTER TABLE :"part_schema".:"part" VALIDATE CONSTRAINT receiptd_bounds;
