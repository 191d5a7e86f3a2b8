-- Version 6: flags that a parked receipt names beside its status ("flags" of its event), as a mask.
ALTER TABLE parked_event ADD COLUMN flags integer NOT NULL DEFAULT 0;

INSERT INTO schema_version (version) VALUES (6);
