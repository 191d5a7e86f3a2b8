/* A pipeline that is being read: between pipelines.c, which checks the grammar, pipelines_read.c,
 * pipelines_split.c and pipelines_window.c, which read its parts, pipelines_cycles.c, which follows
 * its moves, and pipelines_write.c, which says it to the database. Private to these. */
#ifndef RECEIPTD_CONFIG_PIPELINES_INTERNAL_H
#define RECEIPTD_CONFIG_PIPELINES_INTERNAL_H

#include "receiptd/base/json.h"
#include "receiptd/config/pipelines.h"
#include "yaml.h"

#define MAX_CODES    32u
#define MAX_STAGES   100u
#define MAX_VARIANTS 20u
/* An await that has a condition is two steps; one more is the end. */
#define MAX_STEPS (2 * PIPELINES_MAX_ACTIONS + 1)
#define NO_CODE   (-1)
/* In place of a step, until the number of the last one is known. */
#define RUN_ENDS SIZE_MAX

enum op { OP_WEBHOOK, OP_PRODUCE, OP_AWAIT, OP_WAIT, OP_MOVE, OP_SPLIT, OP_END };

struct codes {
    int16_t codes[MAX_CODES];
    size_t count;
};

/* When calls may begin, in seconds of the day; from_s == till_s: at any time. */
struct window {
    int from_s, till_s;
    unsigned days; /* bits 1 (Monday) to 7; 0: every day */
    int64_t smooth_ms;
    const char *hour_field; /* NULL: none */
};

struct step {
    enum op op;
    const char *stage, *target, *key;
    struct codes when, unless;
    bool is_gate; /* decides whether the await behind it begins, by its conditions */
    int16_t awaits;
    int64_t wait_ms; /* of a wait, or how long an await lasts */
    /* The next steps. Stages are kept by name until all are known. */
    const yaml_node_t *next_stage, *else_stage;
    size_t next, other;
    bool uncapped; /* its calls are no messages to the person */
    struct window window;
    yaml_node_t *if_lookup, *unless_lookup; /* columns of the look-up's row; NULL: none */
};

struct stage {
    const char *name;
    size_t first;
};

struct variant {
    const char *stage;
    const yaml_node_t *node; /* of the stage's name */
    int64_t part;            /* its size, or its share in percent */
    size_t first;            /* step of the stage */
};

/* The split of a pipeline. Texts that are NULL were not given. */
struct split {
    const yaml_node_t *node; /* NULL: the pipeline has none */
    struct variant variants[MAX_VARIANTS];
    size_t count;
    bool by_size, decides;
    int64_t gather_ms, after_ms;
    const char *kpi, *campaign, *by, *otherwise;
    double margin;
};

/* The rule of a push, for pipelines behind it that split the same push. */
struct push_rule {
    const char *push, *pipeline;
    char *text;
};

struct compiler {
    const char *name; /* of the file */
    yaml_document_t *document;
    const struct rcpt_config *config;
    struct rcpt_error *error;
    struct pipelines *made;
    /* of the pipeline that is being read */
    const char *pipeline;
    struct step steps[MAX_STEPS];
    size_t step_count, action_count;
    struct stage stages[MAX_STAGES];
    size_t stage_count;
    int16_t on;
    const char *source; /* topic that begins runs; NULL: none */
    yaml_node_t *orgs, *campaigns, *once_per;
    const char *org, *subject;
    struct window window; /* of its calls that have none of their own */
    const char *push;     /* of once_per; NULL: it counts over this pipeline */
    struct split split;
    const yaml_node_t *lookup; /* the text of its look-up … */
    char *lookup_sql;          /* … with columns in place of parameters; NULL: none */
    const char *lookup_as;
    /* of all pipelines so far */
    struct push_rule rules[PIPELINES_MAX];
    size_t rule_count;
};

/* ---- pipelines_read.c; all but the first two return false after setting the error ---- */

yaml_node_t *pipelines_node(const struct compiler *compiler, int index);
/* The value of a key of a mapping; NULL: the key is not there, or its value is null. */
yaml_node_t *pipelines_member(const struct compiler *compiler, const yaml_node_t *mapping,
                              const char *name);
/* "FILE:LINE:COLUMN: pipelines.NAME: text". */
bool pipelines_fail(struct compiler *compiler, const yaml_node_t *node, const char *format, ...)
    RCPT_PRINTF(3, 4);
/* Whether it is a mapping that has keys of this list only, each once. `known`: names, separated by
 * blanks. `what` names the mapping in errors, as below. */
bool pipelines_check_keys(struct compiler *compiler, const yaml_node_t *mapping, const char *what,
                          const char *known);
bool pipelines_read_text(struct compiler *compiler, const yaml_node_t *node, const char *what,
                         const char **text); /* 1 to 249 bytes */
bool pipelines_read_field(struct compiler *compiler, const yaml_node_t *node, const char *what,
                          const char **field);
bool pipelines_read_duration(struct compiler *compiler, const yaml_node_t *node, const char *what,
                             int64_t *duration_ms);
bool pipelines_read_code(struct compiler *compiler, const yaml_node_t *node, int16_t *code);
/* {status: S} or {flag: F}, of which exactly one. */
bool pipelines_read_status_or_flag(struct compiler *compiler, const yaml_node_t *mapping,
                                   const char *what, int16_t *code);
/* One name or a list of them; NULL: none. `unless`: the word `suppressed` may be among them. */
bool pipelines_read_codes(struct compiler *compiler, yaml_node_t *node, bool unless,
                          struct codes *codes);
/* `capped` of an action that is read already; a missing one is true. */
bool pipelines_read_capped(struct compiler *compiler, const yaml_node_t *node, struct step *step);
/* A text or a list of texts, which are kept as nodes. `fields`: they are names of fields. */
bool pipelines_check_texts(struct compiler *compiler, yaml_node_t *node, const char *what,
                           bool fields);
/* The first step of the stage that the node names. */
bool pipelines_find_stage(struct compiler *compiler, const yaml_node_t *node, size_t *first);

/* ---- pipelines_split.c ---- */

/* once_per as a mapping: the push, and the fields by which it counts. */
bool pipelines_read_push(struct compiler *compiler, yaml_node_t **once_per);
bool pipelines_read_split(struct compiler *compiler, yaml_node_t *node, struct step *step);
/* When all stages are known: finds those of the variants, and checks that a run comes to its split
 * once and that pipelines of a push split it in the same way. */
bool pipelines_check_split(struct compiler *compiler);
/* Members of a split's step: its exits, and its rule for the table push. */
void pipelines_write_split(struct compiler *compiler, struct rcpt_json *json);

/* ---- pipelines_window.c ---- */

/* The value of `between`; NULL: the window stays as it is. */
bool pipelines_read_window(struct compiler *compiler, yaml_node_t *node, struct window *window);
/* `between` of an action, whose verb is known. */
bool pipelines_read_between(struct compiler *compiler, const yaml_node_t *node, struct step *step);

/* ---- pipelines_lookup.c ---- */

/* Reads `lookup` of a pipeline, and forgets that of the pipeline before. */
bool pipelines_read_lookup(struct compiler *compiler, const yaml_node_t *pipeline);
/* Reads the conditions of an action by columns of the look-up's row. */
bool pipelines_read_lookup_conditions(struct compiler *compiler, const yaml_node_t *action,
                                      struct step *step);
/* Both write nothing without a look-up; the place is no part of the wording. */
void pipelines_write_lookup(const struct compiler *compiler, struct rcpt_json *json);
void pipelines_write_lookup_place(const struct compiler *compiler, struct rcpt_json *json);

/* ---- pipelines_write.c and pipelines_cycles.c ---- */

/* Whether nothing is decided there: a wait or a move without a condition. */
bool pipelines_is_plain(const struct step *step);
/* Where one that goes to this step stops for the first time, and after how long. */
size_t pipelines_land(const struct compiler *compiler, size_t step, int64_t *delay_ms);
const char *pipelines_op_name(enum op op);
/* The pipeline that has been read as an object, with its hash. */
void pipelines_write(struct compiler *compiler, struct rcpt_json *json);

enum cycle_kind {
    CYCLE_NONE,
    CYCLE_TURNS,
    CYCLE_UNCLEAR, /* not found in a reasonable time */
};

struct cycle {
    size_t last;    /* the step that goes back to where it began */
    char when[200]; /* what a run has to have reached for it, with a blank before; "": nothing */
};

/* Whether a run could come to a step again and again while no time passes. Fills `cycle` if it is
 * CYCLE_TURNS. */
RCPT_MUST_CHECK enum cycle_kind pipelines_find_cycle(const struct compiler *compiler,
                                                     struct cycle *cycle);

/* Statuses and flags are those of the configuration's ladder, endpoints those of actions.endpoints.
 * NULL with an error that has the place of the mistake. */
RCPT_MUST_CHECK struct pipelines *pipelines_compile(const char *name, yaml_document_t *document,
                                                    yaml_node_t *node,
                                                    const struct rcpt_config *config,
                                                    struct rcpt_error *error);

#endif
