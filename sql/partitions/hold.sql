-- Nobody changes a detached partition while it is booked; audits read it. Variables: part_schema, part.
LOCK TABLE ONLY :"part_schema".:"part" IN SHARE MODE;
