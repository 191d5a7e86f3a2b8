/* The commands of receiptd: one row per command, from which parsing and help come. Private to this
 * folder. */
#ifndef RECEIPTD_COMMANDS_COMMAND_H
#define RECEIPTD_COMMANDS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "receiptd/config/config.h"
#include "receiptd/postgres/session.h"

#define COMMAND_MAX_OPTIONS 9u
#define COMMAND_MAX_MORE    3u
#define COMMAND_EXIT_NO     1 /* the answer is no: drift was found, no such campaign */

struct command_option {
    const char *name;     /* without the dashes */
    const char *argument; /* NULL: takes none */
    const char *doc;
};

struct command_call;

struct command {
    const char *name;
    const char *argument; /* the first positional argument, as shown in help; NULL: takes none */
    const char *choices;  /* words it may be, separated by blanks; NULL: anything */
    unsigned more;        /* how many may follow it, named there as well */
    const char *summary;  /* one line */
    const char *doc;      /* paragraphs for --help */
    struct command_option options[COMMAND_MAX_OPTIONS]; /* ends with a NULL name */
    int (*run)(const struct command_call *call);
};

/* One call of a command, as the command line gives it. */
struct command_call {
    const struct command *command;
    const char *config_path;
    const char *argument;               /* NULL: not given */
    const char *more[COMMAND_MAX_MORE]; /* NULL: not given */
    /* By option; "": given, and takes no argument; NULL: not given. */
    const char *values[COMMAND_MAX_OPTIONS];
};

enum command_format { COMMAND_FORMAT_TABLE, COMMAND_FORMAT_JSON, COMMAND_FORMAT_CSV };

/* ---- command.c ---- */
const struct command *command_table(size_t *count);

/* ---- command_line.c: from argv to a call ---- */
/* The value of an option; NULL: it was not given. The command must have the option. */
const char *command_option(const struct command_call *call, const char *name);
/* --format; false after saying what is wrong. */
RCPT_MUST_CHECK bool command_format(const struct command_call *call, enum command_format *format);
/* The integer of an option such as --limit, in [low, high]; `fallback` if the option was not given.
 */
RCPT_MUST_CHECK bool command_number(const struct command_call *call, const char *name, int64_t low,
                                    int64_t high, int64_t fallback, int64_t *value);

/* ---- command_support.c: what several commands need ---- */
/* Keeps secrets and telephone numbers inside the process. No core file is written, and other
 * processes of this user cannot read the memory. The option --core-dumps turns that off. */
void command_protect(const struct command_call *call);
/* "receiptd: text" and "HINT: …" on stderr; returns the exit code to end with. */
int command_fail(const struct rcpt_error *error);
/* The same without advice to run the command that has just failed. */
int command_fail_in(const struct command_call *call, struct rcpt_error *error);
/* The same for a wrong command line, with the hint to look at --help; returns EX_USAGE. */
int command_usage(const struct command_call *call, const char *format, ...) RCPT_PRINTF(2, 3);
/* Loads the configuration and connects; NULL after saying why, with the code to exit with. */
struct command_context {
    struct rcpt_config *config;
    struct rcpt_session *session;
    char *dsn;                   /* of the session */
    struct rcpt_session *holder; /* of turns (turns.h); NULL: none was taken */
    const char *command;
    struct rcpt_error error; /* of the last call that failed */
};
RCPT_MUST_CHECK bool command_open(struct command_context *context, const struct command_call *call,
                                  bool read_only, int *exit_code);
/* The same with this connection string, text or file:PATH; NULL: the configuration's. */
RCPT_MUST_CHECK bool command_open_as(struct command_context *context,
                                     const struct command_call *call, const char *dsn,
                                     bool read_only, int *exit_code);
/* Connects only: the configuration is loaded already. The error is in the context. */
RCPT_MUST_CHECK bool command_connect(struct command_context *context,
                                     const struct command_call *call, bool read_only);
/* A second session like the first. */
RCPT_MUST_CHECK struct rcpt_session *command_open_beside(const struct command_context *context,
                                                         struct rcpt_error *error);
void command_close(struct command_context *context);
/* Ends a command that the owner of the schema runs: prints the error of the context unless `good`,
 * and closes the context. `grants`: the rights that the owner needs on an inbox.table of another
 * role; NULL: the command works on receiptd's own inbox. Returns the exit code. */
int command_end_as_owner(const struct command_call *call, struct command_context *context,
                         bool good, const char *grants);
/* Prints how many rows there are, if there are more than the `shown` ones. `what` as in
 * views/held_count.sql. False: the count failed. */
RCPT_MUST_CHECK bool command_print_held(struct command_context *context, const char *what,
                                        size_t shown);
/* Flushes stdout. Returns `exit_code`, or EX_IOERR if the output did not get through. */
int command_printed(int exit_code);

/* ---- the commands ---- */
int command_run(const struct command_call *call);
/* command_intake() calls the other two for --try and --letters. */
int command_intake(const struct command_call *call);
int command_intake_try(const struct command_call *call);
int command_intake_letters(const struct command_call *call);
int command_serve(const struct command_call *call);
int command_migrate(const struct command_call *call);
int command_check_config(const struct command_call *call);
int command_funnel(const struct command_call *call);
int command_funnel_by(const struct command_call *call); /* funnel --by */
int command_audit(const struct command_call *call);
int command_expire(const struct command_call *call);
int command_retire(const struct command_call *call);
int command_adopt(const struct command_call *call);
int command_maintain(const struct command_call *call);
int command_erase(const struct command_call *call);
int command_dead_letters(const struct command_call *call);
int command_ctl(const struct command_call *call);
/* The verbs of ctl that go to the database. */
int command_org(const struct command_call *call, enum command_format format);
int command_pipeline(const struct command_call *call, enum command_format format);
int command_actions(const struct command_call *call);
int command_push(const struct command_call *call);
int command_positions(const struct command_call *call);
int command_parked(const struct command_call *call);
int command_gateways(const struct command_call *call);
int command_explain(const struct command_call *call);
int command_generate(const struct command_call *call);
int command_folds(const struct command_call *call);
int command_fold_plan(const struct command_call *call);
int command_stream(const struct command_call *call);
int command_suppressions(const struct command_call *call);
int command_version(const struct command_call *call);

#endif
