-- $1 text instance: its lanes are free at once.
SELECT actions_leave($1::text);
