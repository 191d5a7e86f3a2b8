/* A compiled pipeline as the database stores it: steps with their exits and delays, and a hash by
 * which pipelines_store() sees that the wording has changed. Called by pipelines.c; the order of
 * members is part of the hash. */
#include "pipelines_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/document.h"
#include "receiptd/base/text.h"

const char *pipelines_op_name(enum op op)
{
    static const char *const names[] = {"webhook", "produce", "await", "wait",
                                        "move",    "split",   "end"};
    return names[op];
}

/* A condition needs a step of its own, since it is decided when the run arrives there. */
bool pipelines_is_plain(const struct step *step)
{
    return (step->op == OP_WAIT || step->op == OP_MOVE) && step->when.count == 0 &&
           step->unless.count == 0;
}

/* Plain waits and moves are no steps of their own: they become a delay and a target of the step
 * before. An await reached after a delay is entered at the step before it, because an event for
 * which the await waits would otherwise cut the delay short. */
size_t pipelines_land(const struct compiler *compiler, size_t step, int64_t *delay_ms)
{
    size_t before = step;
    /* The bound ends the walk in a cycle of plain steps, which check_cycles() then refuses. */
    for (size_t hops = 0;
         hops <= compiler->step_count && pipelines_is_plain(&compiler->steps[step]); hops++) {
        if (compiler->steps[step].op == OP_WAIT)
            *delay_ms += compiler->steps[step].wait_ms;
        before = step;
        step = compiler->steps[step].next;
    }
    return compiler->steps[step].op == OP_AWAIT && *delay_ms > 0 ? before : step;
}

static void write_codes(struct rcpt_json *json, const char *name, const struct codes *codes)
{
    rcpt_json_key(json, name);
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < codes->count; index++)
        rcpt_json_int(json, codes->codes[index]);
    rcpt_json_end_array(json);
}

/* Written where there is one: pipelines without keep their hash. */
static void write_window(struct rcpt_json *json, const struct window *window)
{
    if (window->from_s == window->till_s)
        return;
    rcpt_json_put_int(json, "from_second", window->from_s);
    rcpt_json_put_int(json, "till_second", window->till_s);
    rcpt_json_put_int(json, "smooth_ms", window->smooth_ms);
    rcpt_json_put_text(json, "hour_field", window->hour_field);
    if (window->days == 0)
        return;
    rcpt_json_key(json, "days");
    rcpt_json_begin_array(json);
    for (int day = 1; day <= 7; day++)
        if (window->days >> day & 1)
            rcpt_json_int(json, day);
    rcpt_json_end_array(json);
}

/* A plain wait is over by the time its step is reached, so it adds nothing to the next delay. */
static void write_step(struct compiler *compiler, struct rcpt_json *json, size_t index)
{
    const struct step *step = &compiler->steps[index];
    /* Where a run comes to a plain wait, that is over already. */
    bool waits = step->op == OP_WAIT && !pipelines_is_plain(step);
    int64_t next_ms = waits ? step->wait_ms : 0, else_ms = 0;
    size_t next = pipelines_land(compiler, step->next, &next_ms);
    size_t other = pipelines_land(compiler, step->other, &else_ms);
    rcpt_json_begin_object(json);
    rcpt_json_put_int(json, "step", (int64_t)index);
    rcpt_json_put_text(json, "stage", step->stage);
    rcpt_json_put_text(json, "op", pipelines_op_name(step->op));
    rcpt_json_put_text(json, "target", step->target);
    rcpt_json_put_text(json, "key", step->key);
    write_codes(json, "if", &step->when);
    write_codes(json, "unless", &step->unless);
    rcpt_json_key(json, "awaits");
    if (step->awaits == NO_CODE)
        rcpt_json_null(json);
    else
        rcpt_json_int(json, step->awaits);
    rcpt_json_put_int(json, "within_ms", step->op == OP_AWAIT ? step->wait_ms : 0);
    rcpt_json_put_int(json, "next_step", (int64_t)next);
    rcpt_json_put_int(json, "next_delay_ms", next_ms);
    rcpt_json_put_int(json, "else_step", (int64_t)other);
    rcpt_json_put_int(json, "else_delay_ms", else_ms);
    if (step->op == OP_SPLIT)
        pipelines_write_split(compiler, json);
    if (step->uncapped) {
        rcpt_json_key(json, "capped");
        rcpt_json_bool(json, false);
    }
    write_window(json, &step->window);
    rcpt_json_end_object(json);
}

/* One text and a list of one text are the same to the database. */
static void write_texts(struct compiler *compiler, struct rcpt_json *json, const char *name,
                        const yaml_node_t *node)
{
    rcpt_json_key(json, name);
    if (node == NULL) {
        rcpt_json_null(json);
        return;
    }
    rcpt_json_begin_array(json);
    if (node->type == YAML_SCALAR_NODE)
        rcpt_json_text(json, rcpt_config_scalar(node));
    else
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            rcpt_json_text(json,
                           rcpt_config_scalar(yaml_document_get_node(compiler->document, *item)));
    rcpt_json_end_array(json);
}

/* Where a run that enters at a stage begins, and after how long. */
static void write_stages(struct compiler *compiler, struct rcpt_json *json)
{
    rcpt_json_key(json, "stages");
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < compiler->stage_count; index++) {
        int64_t delay_ms = 0;
        size_t first = pipelines_land(compiler, compiler->stages[index].first, &delay_ms);
        rcpt_json_key(json, compiler->stages[index].name);
        rcpt_json_begin_array(json);
        rcpt_json_int(json, (int64_t)first);
        rcpt_json_int(json, delay_ms);
        rcpt_json_end_array(json);
    }
    rcpt_json_end_object(json);
}

static void write_members(struct compiler *compiler, struct rcpt_json *json)
{
    int64_t delay_ms = 0;
    size_t first = pipelines_land(compiler, 0, &delay_ms);
    rcpt_json_put_text(json, "name", compiler->pipeline);
    rcpt_json_key(json, "on");
    if (compiler->on == NO_CODE)
        rcpt_json_null(json);
    else
        rcpt_json_int(json, compiler->on);
    rcpt_json_put_text(json, "topic", compiler->source);
    rcpt_json_put_text(json, "org", compiler->org);
    rcpt_json_put_text(json, "subject", compiler->subject);
    write_texts(compiler, json, "orgs", compiler->orgs);
    write_texts(compiler, json, "campaigns", compiler->campaigns);
    write_texts(compiler, json, "once_per", compiler->once_per);
    if (compiler->push != NULL)
        rcpt_json_put_text(json, "push", compiler->push);
    rcpt_json_put_int(json, "first_step", (int64_t)first);
    rcpt_json_put_int(json, "first_delay_ms", delay_ms);
    rcpt_json_key(json, "steps");
    rcpt_json_begin_array(json);
    /* The end is a step too: runs that are over point to it. */
    for (size_t index = 0; index <= compiler->step_count; index++)
        write_step(compiler, json, index);
    rcpt_json_end_array(json);
    write_stages(compiler, json);
    pipelines_write_lookup(compiler, json);
}

/* FNV-1a over the members; it distinguishes wordings and is no protection. */
static void hash_of(struct compiler *compiler, char text[17])
{
    char *members = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&members, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    write_members(compiler, &json);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    uint64_t hash = rcpt_text_hash((struct rcpt_text){members, size});
    free(members);
    snprintf(text, 17, "%016" PRIx64, hash);
}

void pipelines_write(struct compiler *compiler, struct rcpt_json *json)
{
    char hash[17];
    hash_of(compiler, hash);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "hash", hash);
    write_members(compiler, json);
    pipelines_write_lookup_place(compiler, json);
    rcpt_json_end_object(json);
}

/* Reads the written definitions again. */
bool pipelines_have(const struct rcpt_config *config, const char *name)
{
    const char *reason;
    struct rcpt_arena arena;
    bool found = false;
    if (config->compiled == NULL)
        return false;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct rcpt_node *root =
        rcpt_document_parse(rcpt_text_of(config->compiled->definitions), &arena, &reason);
    RCPT_ASSERT(root != NULL && root->type == RCPT_NODE_ARRAY);
    for (const struct rcpt_node *one = root->first; one != NULL && !found; one = one->next)
        found = rcpt_text_is(rcpt_node_text_of(one, "name"), name);
    rcpt_arena_fini(&arena);
    return found;
}
