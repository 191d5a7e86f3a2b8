-- Variables: other, part (its new name).
ALTER TABLE :"other" RENAME TO :"part";
