/* `pipelines` of the configuration: checked, and turned into the steps that pipelines_store()
 * (sql/functions) stores. */
#ifndef RECEIPTD_CONFIG_PIPELINES_H
#define RECEIPTD_CONFIG_PIPELINES_H

#include "receiptd/config/config.h"

#define PIPELINES_MAX         200u
#define PIPELINES_MAX_ACTIONS 200u /* of a pipeline */
#define PIPELINES_MAX_TOPICS  8u   /* that are produced to, and that are read, over all pipelines */

/* In codes of `unless`: the run's person is suppressed. actions_decide() knows the number, too. */
#define PIPELINES_SUPPRESSED 10000

struct pipelines_topics {
    char *names[PIPELINES_MAX_TOPICS];
    size_t count;
};

struct pipelines {
    char *definitions; /* JSON for pipelines_store() */
    size_t count;
    struct pipelines_topics topics;  /* that are produced to */
    struct pipelines_topics sources; /* whose records begin runs */
};

/* The pipelines of a configuration, compiled when it was loaded. The caller owns them afterwards.
 * NULL: there are none, or they were taken before. */
struct pipelines *pipelines_take(struct rcpt_config *config);
/* Whether a pipeline has this name; asked before they are taken. The database knows the pipeline
 * once `receiptd run` has stored it from the same configuration. */
bool pipelines_have(const struct rcpt_config *config, const char *name);
void pipelines_free(struct pipelines *pipelines); /* NULL is fine */

#endif
