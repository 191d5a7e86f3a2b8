-- Removes the status of an instance that stops: $1 text its name. Its last status would look like an instance that
-- has fallen silent.
DELETE FROM instance_status i WHERE i.name = $1::text;
