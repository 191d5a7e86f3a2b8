/* A pipeline that is being read: between pipelines.c, which checks the grammar,
 * pipelines_circles.c, which follows its moves, and pipelines_write.c, which says it to the
 * database. Private to the three. */
#ifndef RECEIPTD_CONFIG_PIPELINES_INTERNAL_H
#define RECEIPTD_CONFIG_PIPELINES_INTERNAL_H

#include "base/json.h"
#include "pipelines.h"

#define MAX_CODES  32u
#define MAX_STAGES 100u
/* An await that has a condition is two steps; one more is the end. */
#define MAX_STEPS (2 * PIPELINES_MAX_ACTIONS + 1)
#define NO_CODE   (-1)
/* In place of a step, until the number of the last one is known. */
#define RUN_ENDS SIZE_MAX

enum op { OP_WEBHOOK, OP_PRODUCE, OP_AWAIT, OP_WAIT, OP_MOVE, OP_END };

struct codes {
    int16_t codes[MAX_CODES];
    size_t count;
};

struct step {
    enum op op;
    const char *stage, *target, *key;
    struct codes when, unless;
    bool is_gate; /* decides whether the await behind it begins, by its conditions */
    int16_t awaits;
    int64_t wait_ms; /* of a wait, or how long an await lasts */
    /* What follows: for a stage by its name until all are known. */
    const yaml_node_t *next_stage, *else_stage;
    size_t next, other;
};

struct stage {
    const char *name;
    size_t first;
};

struct compiler {
    const char *name; /* of the file */
    yaml_document_t *document;
    const struct rcpt_config *config;
    struct rcpt_error *error;
    struct pipelines *made;
    /* of the pipeline at hand */
    const char *pipeline;
    struct step steps[MAX_STEPS];
    size_t step_count, action_count;
    struct stage stages[MAX_STAGES];
    size_t stage_count;
    int16_t on;
    const char *source; /* topic that begins runs; NULL: none */
    yaml_node_t *orgs, *campaigns, *once_per;
    const char *org, *subject;
};

/* Whether nothing is decided there: a wait or a move without a condition. */
bool pipelines_is_plain(const struct step *step);
/* Where one that goes to this step stops for the first time, and after how long. */
size_t pipelines_land(const struct compiler *compiler, size_t step, int64_t *delay_ms);
const char *pipelines_op_name(enum op op);
/* The pipeline at hand as an object, with its hash. */
void pipelines_write(struct compiler *compiler, struct rcpt_json *json);

enum circle_kind {
    CIRCLE_NONE,
    CIRCLE_TURNS,
    CIRCLE_UNCLEAR, /* not found in a reasonable time */
};

struct circle {
    size_t last;    /* the step that goes back to where it began */
    char when[200]; /* what a run has to have reached for it, with a blank before; "": nothing */
};

/* Whether a run could come to a step again and again while no time passes. Fills `circle` if it is
 * CIRCLE_TURNS. */
RCPT_MUST_CHECK enum circle_kind pipelines_find_circle(const struct compiler *compiler,
                                                       struct circle *circle);

#endif
