-- Variables: role.
GRANT :"role" TO CURRENT_USER;
