/* Templates: the place of a value in a request. Compiled once per account, evaluated per receipt.
 *
 *   MessageSid               a parameter of the form, else of the query.
 *                            In JSON it is a member of the item.
 *   ?uuid                    a parameter of the query only.
 *   @x-tag                   a header.
 *   $1                       the first segment of the path behind /dlr/NAME.
 *   /status/name             JSON: from the item on.
 *   ../requestId             JSON: from the item in which this one was found.
 *   ^/batch_id               JSON: from the root on.
 *   .                        the item itself.
 *   {/batch_id}|{/to,/rcpt}  composed: text and fields in braces; commas part alternatives.
 *
 * A composed value is empty if one of its fields is. If fields are longer than any id may be, the
 * first of them stands alone. Numbers count as texts. In a path, "-1" is no index: elements are
 * named from 0.
 */
#ifndef RECEIPTD_GATEWAYS_TEMPLATE_H
#define RECEIPTD_GATEWAYS_TEMPLATE_H

#include "form.h"
#include "receiptd/base/document.h"
#include "receiptd/base/error.h"
#include "receiptd/gateways/adapter.h"

#define RCPT_ITEM_MAX_LEVELS 6u

/* Values from around the items, which are looked up once instead of for each item. */
#define RCPT_OUTER_VALUES 16u
struct rcpt_outer_values {
    struct {
        const void *field;
        const struct rcpt_node *from;
        struct rcpt_text value;
    } found[RCPT_OUTER_VALUES];
    unsigned next;
};

/* The parts of a request from which values are taken. */
struct rcpt_source {
    const struct rcpt_gateway_request *request;
    struct rcpt_form query, form;
    const struct rcpt_node *root;                        /* NULL: no JSON */
    const struct rcpt_node *items[RCPT_ITEM_MAX_LEVELS]; /* the item and those around it */
    unsigned level;                                      /* items[level] is the item */
    struct rcpt_arena *arena;
    struct rcpt_outer_values *outer; /* NULL: nothing is kept */
};

struct rcpt_template;

/* NULL with a reason ("a brace is not closed") if the text is none. The caller frees it. */
RCPT_MUST_CHECK struct rcpt_template *rcpt_template_new(const char *text, const char **reason);
/* Parts of a request that it names: RCPT_COVERS_BODY, _QUERY, _PATH, _HEADERS (verify.h). `headers`
 * ends with NULL or after two; a header in it does not count. Nor does a plain parameter, which is
 * taken from any visible place. */
unsigned rcpt_template_parts(const struct rcpt_template *template, const char *const headers[2]);
void rcpt_template_free(struct rcpt_template *template);

/* The value without blanks around it; size 0: there is none. NULL template: none. */
struct rcpt_text rcpt_template_value(const struct rcpt_template *template,
                                     const struct rcpt_source *source);

/* The values of all alternatives, at most `most`; a composed template has one. Returns their
 * number. */
unsigned rcpt_template_values(const struct rcpt_template *template,
                              const struct rcpt_source *source, struct rcpt_text *values,
                              unsigned most);

/* A plain parameter: form, else query, else member of the item. */
struct rcpt_text rcpt_source_value(const struct rcpt_source *source, const char *name);
/* Value of the first header of that name; at == NULL: none. */
struct rcpt_text rcpt_source_header(const struct rcpt_source *source, const char *name);

#endif
