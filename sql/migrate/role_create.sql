-- Variable: role. Without a password: it cannot log in by one before an administrator has set it (\password in psql,
-- which sends the server a SCRAM verifier, never the password).
CREATE ROLE :"role" LOGIN;
