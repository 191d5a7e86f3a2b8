-- Before back.sql: reads the detached partition, which nobody changes. Variables: part_schema, part.
ALTER TABLE :"part_schema".:"part" VALIDATE CONSTRAINT receiptd_bounds;
