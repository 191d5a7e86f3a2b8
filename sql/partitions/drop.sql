-- Drops a partition that is booked, and forgets it where it was noted (inbox_partition). Variables: part_schema, part.
DELETE FROM inbox_partition p USING pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.part = c.oid AND n.nspname = :'part_schema' AND c.relname = :'part';
DROP TABLE :"part_schema".:"part";
