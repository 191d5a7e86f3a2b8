-- An instance stops: $1 text its name. What it said last would look like an instance that has fallen silent.
DELETE FROM instance_status i WHERE i.name = $1::text;
