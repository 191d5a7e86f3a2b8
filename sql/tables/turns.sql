-- Work that one session at a time may do. No variables; search_path = the schema.

-- The session that does a task locks its row. Advisory locks would do the same, but every role of the database may
-- take those, without any right, and keep others from working. The table never gets other rows than these.
CREATE TABLE turn (
    task text COLLATE "C",
    lane smallint, -- of receipts; 0: the task has no lanes
    PRIMARY KEY (task, lane)
);
INSERT INTO turn (task, lane)
VALUES ('groups', 0), -- folds changes of groups, repairs or erases groups
       ('tally', 0); -- rolls up what rules counted (counter_delta)
INSERT INTO turn (task, lane) SELECT 'ranges', n FROM generate_series(0, 255) n; -- resolves ranges of a lane
