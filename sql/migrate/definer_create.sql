-- A role for functions with rights of their own. It cannot log in; the owner of the schema has to be a member to give
-- functions to it and to replace them. Variables: role, purpose.
CREATE ROLE :"role" NOLOGIN;
COMMENT ON ROLE :"role" IS :'purpose';
