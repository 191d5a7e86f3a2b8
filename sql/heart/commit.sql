-- Last statement of the second flight.
COMMIT;
