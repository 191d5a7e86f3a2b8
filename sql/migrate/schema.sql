-- The schema itself, before anything else. Variables: schema.
CREATE SCHEMA IF NOT EXISTS :"schema";
