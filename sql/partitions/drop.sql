-- Variables: part_schema, part.
DROP TABLE :"part_schema".:"part";
