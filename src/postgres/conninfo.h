/* The parameters of a connection: the dsn's values, and our own where it is silent. Private to
 * src/postgres. */
#ifndef SRC_POSTGRES_CONNINFO_H
#define SRC_POSTGRES_CONNINFO_H

#include "hosts.h"
#include "receiptd/postgres/connection.h"

#define RCPT_CONNINFO_CAPACITY 96u

struct rcpt_conninfo {
    const char *keywords[RCPT_CONNINFO_CAPACITY +
                         1]; /* NULL-terminated, as PQconnectStartParams takes them */
    const char *values[RCPT_CONNINFO_CAPACITY + 1];
    size_t count;
};

/* The hosts that the dsn (or libpq's environment) names. */
bool rcpt_conninfo_hosts(const char *dsn, struct rcpt_hosts *hosts,
                         struct rcpt_error *error) RCPT_MUST_CHECK;

#define RCPT_SESSION_SETTINGS 17u

struct rcpt_session_setting {
    const char *name;
    char value[96];
};

/* The settings of a session, at most RCPT_SESSION_SETTINGS; returns how many. They are sent with
 * the connection's options, and are repeated by SQL, since a pooler may drop options.
 * `stable_plans`: the session is for statements that must use an index. */
size_t rcpt_conninfo_session(const struct rcpt_pg_settings *settings, bool stable_plans,
                             struct rcpt_session_setting *found);

bool rcpt_conninfo_init(struct rcpt_conninfo *info, const struct rcpt_pg_settings *settings,
                        const struct rcpt_hosts *candidates, bool stable_plans,
                        struct rcpt_error *error) RCPT_MUST_CHECK;
void rcpt_conninfo_fini(struct rcpt_conninfo *info);

/* The value of a keyword; NULL if it is not set. */
const char *rcpt_conninfo_value(const struct rcpt_conninfo *info, const char *keyword);

#endif
