/* A JSON text as a tree in an arena.
 *
 * json_read.c reads; the tree exists because adapters need values in an order of their own. Numbers
 * stay texts, so that 64-bit ids and 7-digit fractions are exact; every value knows its bytes, so
 * that a bad one can go to the dead letters as it came. UTF-8 is not checked here.
 */
#ifndef RECEIPTD_BASE_DOCUMENT_H
#define RECEIPTD_BASE_DOCUMENT_H

#include "receiptd/base/json_read.h"

#define RCPT_DOCUMENT_MAX_NODES 500000u

enum rcpt_node_type {
    RCPT_NODE_NULL = RCPT_JSON_NULL,
    RCPT_NODE_BOOLEAN = RCPT_JSON_BOOLEAN,
    RCPT_NODE_NUMBER = RCPT_JSON_NUMBER,
    RCPT_NODE_STRING = RCPT_JSON_STRING,
    RCPT_NODE_ARRAY = RCPT_JSON_ARRAY,
    RCPT_NODE_OBJECT = RCPT_JSON_OBJECT,
};

struct rcpt_node {
    enum rcpt_node_type type;
    struct rcpt_text key;  /* of a member of an object */
    struct rcpt_text text; /* of a scalar: decoded, as written, "true", "false"; null has none */
    struct rcpt_text raw;  /* the value's bytes */
    const struct rcpt_node *next;  /* in the same array or object */
    const struct rcpt_node *first; /* of an array or object */
};

/* NULL: not JSON, or beyond the limits; `reason` then says which: "invalid_json", "too_deep" or
 * "too_many_values". Points into the text, which has to stay. */
const struct rcpt_node *rcpt_document_parse(struct rcpt_text text, struct rcpt_arena *arena,
                                            const char **reason);

/* Reads the members of the outermost object without a tree: everything else is skipped, under the
 * same limits, and costs no memory. `names`: found[i] becomes the last member with names[i], as
 * rcpt_node_member would find it; type RCPT_NODE_NULL: there is none. NULL: all members in their
 * order, at most *count ("too_many_values"), and *count is set. A container has its `raw` and no
 * children. False: not JSON, or beyond the limits, and nothing is found. */
bool rcpt_document_members(struct rcpt_text text, struct rcpt_arena *arena,
                           const char *const *names, struct rcpt_node *found, size_t *count,
                           const char **reason);

/* Whether it begins as an object or array does. */
bool rcpt_document_looks_like(struct rcpt_text text);

/* Member of an object by name, the last one of several; blanks around names do not count. NULL: no
 * such member, or no object (also when `object` is NULL). */
const struct rcpt_node *rcpt_node_member(const struct rcpt_node *object, struct rcpt_text name);
const struct rcpt_node *rcpt_node_get(const struct rcpt_node *object, const char *name);
const struct rcpt_node *rcpt_node_element(const struct rcpt_node *array, unsigned index);
/* Text of a scalar without blanks around it; empty for everything else. */
struct rcpt_text rcpt_node_text(const struct rcpt_node *node);
/* rcpt_node_text(rcpt_node_get(object, name)) */
struct rcpt_text rcpt_node_text_of(const struct rcpt_node *object, const char *name);
bool rcpt_node_is_true(const struct rcpt_node *node);
/* Null, or containers with nothing in them but containers and null; false for NULL. */
bool rcpt_node_is_bare(const struct rcpt_node *node);

#endif
