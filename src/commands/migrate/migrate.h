/* The plan of a migration: steps of plain words and SQL. Making it only reads the database. Private
 * to this folder. */
#ifndef RECEIPTD_COMMANDS_MIGRATE_MIGRATE_H
#define RECEIPTD_COMMANDS_MIGRATE_MIGRATE_H

#include "../command.h"
#include "receiptd/postgres/bind.h"

#define MIGRATE_MAX_STEPS    200u
#define MIGRATE_MAX_BINDINGS 48u

enum { MIGRATE_COUNTER, MIGRATE_WATCHER, MIGRATE_DEFINERS };

struct migrate_step {
    char *what; /* "create schema receiptd" */
    char *sql;
    const char *part; /* the file of a function or view that it replaces; NULL: another step */
};

struct migrate_plan {
    struct command_context *context;
    /* NULL: another command asks what a migration would do. */
    const struct command_call *call;
    bool dry_run;   /* reads without locks */
    bool was_there; /* an earlier migration's tables, when this one began */
    struct rcpt_pg_binding bindings[MIGRATE_MAX_BINDINGS];
    size_t binding_count;
    char *owned[MIGRATE_MAX_BINDINGS]; /* values that were made for the bindings */
    size_t owned_count;
    struct migrate_step steps[MIGRATE_MAX_STEPS];
    size_t step_count;
    bool maps_inbox; /* an existing table comes in: its rows were not seen by the ladder's check */
    bool has_times;  /* the inbox has the columns of counters.times, or gets them */
    bool installs_triggers;
    bool hands_over[MIGRATE_DEFINERS]; /* a function gets its owner, after it was made */
    char note[256];                    /* a task that is left to an administrator; "": none */
};

void migrate_plan_init(struct migrate_plan *plan, struct command_context *context,
                       const struct command_call *call, bool dry_run);
void migrate_plan_fini(struct migrate_plan *plan);
/* Empties the plan, as after migrate_plan_init(). */
void migrate_plan_again(struct migrate_plan *plan);

/* Reads the database's state and fills the steps, in the migration's transaction after its lock, or
 * in a read-only one for a dry run. False: the error is in the context. */
RCPT_MUST_CHECK bool migrate_plan_make(struct migrate_plan *plan);

/* ---- for the parts of the plan ---- */
/* The name must live as long as the plan. The value is copied. */
void migrate_bind(struct migrate_plan *plan, const char *name, const char *value);
const char *migrate_binding(const struct migrate_plan *plan, const char *name);
/* A step from an embedded file, its variables bound. */
RCPT_MUST_CHECK bool migrate_add(struct migrate_plan *plan, const char *file, const char *format,
                                 ...) RCPT_PRINTF(3, 4);

/* The same with other variables than the plan's. */
RCPT_MUST_CHECK bool migrate_add_bound(struct migrate_plan *plan, const char *file,
                                       const struct rcpt_pg_binding *bindings, size_t count,
                                       const char *format, ...) RCPT_PRINTF(5, 6);
/* Appends an embedded file to the last step. */
RCPT_MUST_CHECK bool migrate_append(struct migrate_plan *plan, const char *file);
/* The value of an option of the command line; NULL: not given. */
const char *migrate_option(const struct migrate_plan *plan, const char *name);

/* ---- variables.c ---- */
/* Binds the inbox's place, its columns, and counters.by and counters.groups. */
void migrate_inbox_bind(struct migrate_plan *plan);

/* ---- parts.c ---- */
/* Adds a step for each function and view that differs; `fresh`: the schema has none. */
RCPT_MUST_CHECK bool migrate_parts_plan(struct migrate_plan *plan, bool fresh);
/* Whether the plan replaces this one: "functions/map_inbox". */
bool migrate_part_changes(const struct migrate_plan *plan, const char *name);
/* Adds the step that takes EXECUTE from PUBLIC, which every new function has, if a function needs
 * it. `state`: the row of state.sql. */
RCPT_MUST_CHECK bool migrate_parts_plan_private(struct migrate_plan *plan,
                                                const struct rcpt_session_rows *state);
/* ---- definers.c ---- */
/* Adds the steps that make the roles of functions with rights of their own, before the functions
 * are made. Refuses (EX_NOPERM) if only an administrator can make them, and prints the SQL on
 * stderr. */
RCPT_MUST_CHECK bool migrate_definers_prepare(struct migrate_plan *plan);
/* Adds the steps that give them the functions. */
RCPT_MUST_CHECK bool migrate_definers_plan(struct migrate_plan *plan);

/* ---- dimensions.c ---- */
/* Adds the columns of counters.by that our own inbox does not have. */
RCPT_MUST_CHECK bool migrate_dimensions_plan(struct migrate_plan *plan);
/* Lets the platform's role write them. */
RCPT_MUST_CHECK bool migrate_dimensions_grant(struct migrate_plan *plan, const char *platform_role);

/* ---- roles.c ---- */
/* Adds the steps for --role, --platform-role, --intake-role and --serve-role. They come last, since
 * they grant rights on what the others make. */
RCPT_MUST_CHECK bool migrate_roles_plan(struct migrate_plan *plan);

/* ---- ladder.c ---- */
/* Binds the ladder's arrays. */
void migrate_ladder_bind(struct migrate_plan *plan);
/* Adds the steps for the ladder; `fresh`: its tables are not there yet. */
RCPT_MUST_CHECK bool migrate_ladder_plan(struct migrate_plan *plan, bool fresh);
/* Refuses (EX_NOPERM) a mapped table whose owner could have functions run with our rights. Called
 * before any query of the inbox. */
RCPT_MUST_CHECK bool migrate_check_callers(struct migrate_plan *plan);
/* Refuses (EX_CONFIG, each status with its rows) a ladder that contradicts rows in use. */
RCPT_MUST_CHECK bool migrate_ladder_check(struct migrate_plan *plan);
/* The same for a table that is not the inbox yet. The transaction must be able to lock, and is
 * rolled back. */
RCPT_MUST_CHECK bool migrate_ladder_try(struct migrate_plan *plan);

#endif
