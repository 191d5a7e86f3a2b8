-- Keeps a detached partition from changes while it is booked; audits read it. Variables: part_schema, part.
LOCK TABLE ONLY :"part_schema".:"part" IN SHARE MODE;
