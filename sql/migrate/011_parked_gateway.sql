-- Version 11: the gateway that a parked receipt names, for figures. Only added to: instances of the version before go on beside
-- this one; what they park has none.
ALTER TABLE parked_event ADD COLUMN gateway text COLLATE "C";

INSERT INTO schema_version (version) VALUES (11);
