-- A detached partition does not return, and is not dropped, while it is booked. Variables: part_schema, part.
LOCK TABLE ONLY :"part_schema".:"part" IN ACCESS SHARE MODE;
