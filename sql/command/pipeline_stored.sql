-- Whether an instance has stored a pipeline of its configuration, so that runs of it may begin: $1 text name. Returns
-- stored (bool).
SELECT EXISTS (SELECT FROM pipeline p WHERE p.name = $1::text AND p.active) AS stored;
