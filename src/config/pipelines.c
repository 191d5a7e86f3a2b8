#include "pipelines_internal.h"

#include <stdlib.h>
#include <string.h>

#include "value.h"

static bool fail(struct compiler *compiler, const yaml_node_t *node, const char *format, ...)
    RCPT_PRINTF(3, 4);

static bool fail(struct compiler *compiler, const yaml_node_t *node, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return rcpt_config_error(compiler->error, compiler->name, rcpt_config_place_of(node),
                             "pipelines%s%s: %s", compiler->pipeline != NULL ? "." : "",
                             compiler->pipeline != NULL ? compiler->pipeline : "", text);
}

/* ---- reading ---- */

static yaml_node_t *node_at(const struct compiler *compiler, int index)
{
    return yaml_document_get_node(compiler->document, index);
}

/* A key of a mapping; NULL: not there, or nothing. */
static yaml_node_t *member(const struct compiler *compiler, const yaml_node_t *mapping,
                           const char *name)
{
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(compiler, pair->key);
        yaml_node_t *value = node_at(compiler, pair->value);
        if (strcmp(rcpt_config_scalar(key), name) == 0)
            return rcpt_config_is_null(value) ? NULL : value;
    }
    return NULL;
}

/* A mapping that has keys of this list only, each once; names are separated by blanks. */
static bool check_keys(struct compiler *compiler, const yaml_node_t *mapping, const char *what,
                       const char *known)
{
    if (mapping->type != YAML_MAPPING_NODE)
        return fail(compiler, mapping, "%s must be a mapping with %s", what, known);
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(compiler, pair->key);
        if (key->type != YAML_SCALAR_NODE)
            return fail(compiler, key, "a key must be plain text");
        const char *name = rcpt_config_scalar(key);
        size_t size = strlen(name);
        bool found = false;
        for (const char *at = known; !found && *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            found = length == size && memcmp(at, name, size) == 0;
            at += length;
        }
        if (!found)
            return fail(compiler, key, "%s has no key \"%.40s\": it may have %s", what, name,
                        known);
        for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair;
             other++)
            if (strcmp(rcpt_config_scalar(node_at(compiler, other->key)), name) == 0)
                return fail(compiler, key, "\"%.40s\" is given twice", name);
    }
    return true;
}

static bool read_text(struct compiler *compiler, const yaml_node_t *node, const char *what,
                      const char **text)
{
    if (node->type != YAML_SCALAR_NODE || rcpt_config_scalar(node)[0] == '\0' ||
        strlen(rcpt_config_scalar(node)) > 249)
        return fail(compiler, node, "%s must be a text of 1 to 249 bytes", what);
    *text = rcpt_config_scalar(node);
    return true;
}

static bool read_field(struct compiler *compiler, const yaml_node_t *node, const char *what,
                       const char **field)
{
    if (!read_text(compiler, node, what, field))
        return false;
    return rcpt_config_is_identifier(*field) ||
           fail(compiler, node, "%s: \"%.40s\" is not the name of a field", what, *field);
}

static bool read_duration(struct compiler *compiler, const yaml_node_t *node, const char *what,
                          int64_t *duration_ms)
{
    const char *text = "";
    const int64_t most = 366LL * 24 * 3600 * 1000;
    if (!read_text(compiler, node, what, &text))
        return false;
    if (!rcpt_config_parse_number(RCPT_CONFIG_DURATION, text, duration_ms) || *duration_ms < 0 ||
        *duration_ms > most)
        return fail(compiler, node, "%s: \"%.40s\" is not a duration up to 366d, such as 2h", what,
                    text);
    return true;
}

static bool read_code(struct compiler *compiler, const yaml_node_t *node, int16_t *code)
{
    const char *text = "";
    const struct rcpt_ladder *ladder = compiler->config->ladder;
    if (!read_text(compiler, node, "a status or flag", &text))
        return false;
    int index = rcpt_ladder_find_name(ladder, text, strlen(text), NULL, 0);
    if (index < 0)
        return fail(compiler, node, "there is no status or flag \"%.63s\" in the ladder", text);
    *code = rcpt_ladder_entry(ladder, (size_t)index)->code;
    return true;
}

/* {status: S} or {flag: F}, of which exactly one. */
static bool read_status_or_flag(struct compiler *compiler, const yaml_node_t *mapping,
                                const char *what, int16_t *code)
{
    const yaml_node_t *status = member(compiler, mapping, "status");
    const yaml_node_t *flag = member(compiler, mapping, "flag");
    const yaml_node_t *given = status != NULL ? status : flag;
    if (given == NULL || (status != NULL && flag != NULL))
        return fail(compiler, mapping, "%s needs either status or flag", what);
    if (!read_code(compiler, given, code))
        return false;
    if ((*code >= RCPT_LADDER_FIRST_FLAG_CODE) != (given == flag))
        return fail(compiler, given, "\"%.63s\" is a %s", rcpt_config_scalar(given),
                    given == flag ? "status" : "flag");
    return true;
}

/* One name or a list of them. */
static bool read_codes(struct compiler *compiler, yaml_node_t *node, struct codes *codes)
{
    if (node == NULL)
        return true;
    if (node->type == YAML_SCALAR_NODE)
        return read_code(compiler, node, &codes->codes[codes->count++]);
    if (node->type != YAML_SEQUENCE_NODE)
        return fail(compiler, node, "expected the name of a status or flag, or a list of names");
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        if (codes->count == MAX_CODES)
            return fail(compiler, node, "more than %u names", MAX_CODES);
        if (!read_code(compiler, node_at(compiler, *item), &codes->codes[codes->count++]))
            return false;
    }
    return true;
}

/* A text or a list of texts, looked at later; `fields`: they are names of fields. */
static bool check_texts(struct compiler *compiler, yaml_node_t *node, const char *what, bool fields)
{
    const char *text = "";
    if (node == NULL)
        return true;
    if (node->type == YAML_SCALAR_NODE)
        return fields ? read_field(compiler, node, what, &text)
                      : read_text(compiler, node, what, &text);
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.start == node->data.sequence.items.top)
        return fail(compiler, node, "%s must be a text or a list of texts", what);
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *each = node_at(compiler, *item);
        if (!(fields ? read_field(compiler, each, what, &text)
                     : read_text(compiler, each, what, &text)))
            return false;
    }
    return true;
}

/* ---- actions ---- */

static bool find_endpoint(struct compiler *compiler, const yaml_node_t *node, const char *endpoint)
{
    for (size_t index = 0; index < compiler->config->actions.endpoints_count; index++)
        if (strcmp(compiler->config->actions.endpoints[index].name, endpoint) == 0)
            return true;
    return fail(compiler, node, "there is no endpoint \"%.63s\" in actions.endpoints", endpoint);
}

static bool add_topic(struct compiler *compiler, const yaml_node_t *node, const char *topic,
                      struct pipelines_topics *topics)
{
    if (!rcpt_config_is_topic(topic))
        return fail(compiler, node, "\"%.63s\" is not the name of a topic", topic);
    for (size_t index = 0; index < topics->count; index++)
        if (strcmp(topics->names[index], topic) == 0)
            return true;
    if (topics->count == PIPELINES_MAX_TOPICS)
        return fail(compiler, node, "more than %u topics are %s", PIPELINES_MAX_TOPICS,
                    topics == &compiler->made->topics ? "produced to" : "read");
    topics->names[topics->count++] = rcpt_strdup(topic);
    return true;
}

static bool read_webhook(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_WEBHOOK;
    const yaml_node_t *endpoint = node;
    if (node->type != YAML_SCALAR_NODE) {
        if (!check_keys(compiler, node, "webhook", "endpoint"))
            return false;
        endpoint = member(compiler, node, "endpoint");
        if (endpoint == NULL)
            return fail(compiler, node, "webhook needs an endpoint");
    }
    return read_text(compiler, endpoint, "webhook.endpoint", &step->target) &&
           find_endpoint(compiler, endpoint, step->target);
}

static bool read_produce(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_PRODUCE;
    step->key = "subject";
    const yaml_node_t *topic = node;
    if (node->type != YAML_SCALAR_NODE) {
        if (!check_keys(compiler, node, "produce", "topic key"))
            return false;
        topic = member(compiler, node, "topic");
        const yaml_node_t *key = member(compiler, node, "key");
        if (topic == NULL)
            return fail(compiler, node, "produce needs a topic");
        if (key != NULL && !read_text(compiler, key, "produce.key", &step->key))
            return false;
        if (strcmp(step->key, "subject") != 0 && strcmp(step->key, "org_id") != 0 &&
            strcmp(step->key, "campaign_id") != 0 && strcmp(step->key, "message_id") != 0)
            return fail(compiler, key,
                        "produce.key is one of subject, org_id, campaign_id, message_id, not "
                        "\"%.40s\"",
                        step->key);
    }
    return read_text(compiler, topic, "produce.topic", &step->target) &&
           add_topic(compiler, topic, step->target, &compiler->made->topics);
}

static bool read_await(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_AWAIT;
    if (!check_keys(compiler, node, "await", "status flag within else"))
        return false;
    const yaml_node_t *within = member(compiler, node, "within");
    if (within == NULL)
        return fail(compiler, node, "await needs within, how long to wait");
    step->else_stage = member(compiler, node, "else");
    return read_status_or_flag(compiler, node, "await", &step->awaits) &&
           read_duration(compiler, within, "await.within", &step->wait_ms);
}

/* What is passed over goes on behind it, what is not reached in time with `else`, and a step has
 * one way out beside the next. So the condition of an await is a step of its own, before it; and so
 * is the place where a run is while a wait that has a condition keeps it from beginning. */
static bool needs_gate(const struct compiler *compiler, const struct step *await)
{
    const struct step *before = await - 1;
    return await->when.count > 0 || await->unless.count > 0 ||
           (await > compiler->steps && before->stage == await->stage && before->op == OP_WAIT &&
            !pipelines_is_plain(before));
}

static void put_gate(struct compiler *compiler, struct step *step)
{
    struct step *await = &compiler->steps[compiler->step_count++];
    *await = *step;
    *step = (struct step){.op = OP_MOVE,
                          .stage = step->stage,
                          .when = step->when,
                          .unless = step->unless,
                          .is_gate = true,
                          .awaits = NO_CODE};
    await->when.count = await->unless.count = 0;
}

static bool read_action(struct compiler *compiler, yaml_node_t *node, const char *stage)
{
    if (compiler->action_count++ == PIPELINES_MAX_ACTIONS)
        return fail(compiler, node, "more than %u actions", PIPELINES_MAX_ACTIONS);
    struct step *step = &compiler->steps[compiler->step_count++];
    *step = (struct step){.stage = stage, .awaits = NO_CODE};
    if (!check_keys(compiler, node, "an action", "wait await webhook produce move if unless"))
        return false;
    yaml_node_t *found = NULL;
    for (enum op op = OP_WEBHOOK; op < OP_END; op++) {
        yaml_node_t *each = member(compiler, node, pipelines_op_name(op));
        if (each != NULL && found != NULL)
            return fail(compiler, each, "an action is one of wait, await, webhook, produce, move");
        if (each != NULL) {
            found = each;
            step->op = op;
        }
    }
    if (found == NULL)
        return fail(compiler, node, "an action is one of wait, await, webhook, produce, move");
    if (!read_codes(compiler, member(compiler, node, "if"), &step->when) ||
        !read_codes(compiler, member(compiler, node, "unless"), &step->unless))
        return false;
    switch (step->op) {
    case OP_WEBHOOK:
        return read_webhook(compiler, found, step);
    case OP_PRODUCE:
        return read_produce(compiler, found, step);
    case OP_AWAIT:
        if (!read_await(compiler, found, step))
            return false;
        if (needs_gate(compiler, step))
            put_gate(compiler, step);
        return true;
    case OP_WAIT:
        return read_duration(compiler, found, "wait", &step->wait_ms);
    default:
        step->next_stage = found;
        return true;
    }
}

/* ---- stages ---- */

static bool read_stage(struct compiler *compiler, yaml_node_t *node)
{
    if (!check_keys(compiler, node, "a stage", "name actions"))
        return false;
    const yaml_node_t *name = member(compiler, node, "name");
    const yaml_node_t *actions = member(compiler, node, "actions");
    if (name == NULL || actions == NULL || actions->type != YAML_SEQUENCE_NODE)
        return fail(compiler, node, "a stage has a name and a list of actions");
    if (compiler->stage_count == MAX_STAGES)
        return fail(compiler, node, "more than %u stages", MAX_STAGES);
    struct stage *stage = &compiler->stages[compiler->stage_count];
    if (!read_text(compiler, name, "the name of a stage", &stage->name))
        return false;
    for (size_t index = 0; index < compiler->stage_count; index++)
        if (strcmp(compiler->stages[index].name, stage->name) == 0)
            return fail(compiler, name, "two stages are named \"%.63s\"", stage->name);
    compiler->stage_count++;
    stage->first = compiler->step_count;
    for (const yaml_node_item_t *item = actions->data.sequence.items.start;
         item < actions->data.sequence.items.top; item++) {
        size_t index = compiler->step_count;
        if (!read_action(compiler, node_at(compiler, *item), stage->name))
            return false;
        for (; index < compiler->step_count; index++)
            compiler->steps[index].next = index + 1;
    }
    /* A stage that is not left by a move ends the run. */
    if (compiler->step_count > stage->first)
        compiler->steps[compiler->step_count - 1].next = RUN_ENDS;
    else
        return fail(compiler, actions, "stage \"%.63s\" has no actions", stage->name);
    return true;
}

static bool find_stage(struct compiler *compiler, const yaml_node_t *node, size_t *first)
{
    const char *text = "";
    if (!read_text(compiler, node, "the name of a stage", &text))
        return false;
    for (size_t index = 0; index < compiler->stage_count; index++) {
        if (strcmp(compiler->stages[index].name, text) == 0) {
            *first = compiler->stages[index].first;
            return true;
        }
    }
    return fail(compiler, node, "there is no stage \"%.63s\"", text);
}

static size_t end_of(const struct compiler *compiler, size_t step)
{
    return step == RUN_ENDS ? compiler->step_count : step;
}

/* Names of stages become steps; the end is one step more. */
static bool resolve_stages(struct compiler *compiler)
{
    for (size_t index = 0; index < compiler->step_count; index++) {
        struct step *step = &compiler->steps[index];
        step->next = end_of(compiler, step->next);
        /* Passed over, or not reached without an else. */
        step->other =
            step->is_gate ? end_of(compiler, compiler->steps[index + 1].next) : step->next;
        if (step->next_stage != NULL && !find_stage(compiler, step->next_stage, &step->next))
            return false;
        if (step->else_stage != NULL && !find_stage(compiler, step->else_stage, &step->other))
            return false;
    }
    compiler->steps[compiler->step_count] =
        (struct step){.op = OP_END, .stage = "", .awaits = NO_CODE, .next = compiler->step_count};
    compiler->steps[compiler->step_count].other = compiler->step_count;
    return true;
}

/* A circle in which no time passes is one too many for whoever is called in it. One of plain waits
 * and moves has no step at which a run could stand. */
static bool check_circles(struct compiler *compiler, const yaml_node_t *node)
{
    struct circle circle;
    enum circle_kind kind = pipelines_find_circle(compiler, &circle);
    if (kind == CIRCLE_UNCLEAR)
        return fail(compiler, node,
                    "has too many conditions on flags to see whether it moves in a circle without "
                    "a wait");
    if (kind == CIRCLE_TURNS) {
        const struct step *last = &compiler->steps[circle.last];
        return fail(compiler, last->op == OP_AWAIT ? last->else_stage : last->next_stage,
                    "stage \"%.63s\" moves in a circle without a wait%s", last->stage, circle.when);
    }
    for (size_t start = 0; start < compiler->step_count; start++) {
        int64_t delay_ms = 0;
        const struct step *landed = &compiler->steps[pipelines_land(compiler, start, &delay_ms)];
        if (pipelines_is_plain(landed) && pipelines_is_plain(&compiler->steps[landed->next]))
            return fail(compiler, node,
                        "stage \"%.63s\" waits and moves in a circle in which nothing happens",
                        compiler->steps[start].stage);
    }
    return true;
}

/* ---- the whole ---- */

static bool read_source(struct compiler *compiler, const yaml_node_t *on)
{
    const yaml_node_t *topic = member(compiler, on, "topic");
    if (member(compiler, on, "status") != NULL || member(compiler, on, "flag") != NULL)
        return fail(compiler, on, "on needs one of status, flag and topic");
    if (!read_text(compiler, topic, "the name of a topic", &compiler->source))
        return false;
    for (size_t index = 0; index < compiler->config->kafka.topics_count; index++)
        if (strcmp(compiler->config->kafka.topics[index], compiler->source) == 0)
            return fail(compiler, topic, "\"%.63s\" is a topic of receipts", compiler->source);
    return add_topic(compiler, topic, compiler->source, &compiler->made->sources);
}

static bool read_on(struct compiler *compiler, yaml_node_t *node)
{
    if (node == NULL)
        return true; /* begun by imports only */
    if (node->type == YAML_SCALAR_NODE && strcmp(rcpt_config_scalar(node), "api") == 0)
        return true; /* by the command only, said aloud */
    if (node->type == YAML_SCALAR_NODE)
        return read_code(compiler, node, &compiler->on);
    if (!check_keys(compiler, node, "on", "status flag topic match"))
        return false;
    yaml_node_t *match = member(compiler, node, "match");
    if (match != NULL) {
        if (!check_keys(compiler, match, "on.match", "org campaign"))
            return false;
        compiler->orgs = member(compiler, match, "org");
        compiler->campaigns = member(compiler, match, "campaign");
    }
    return check_texts(compiler, compiler->orgs, "on.match.org", false) &&
           check_texts(compiler, compiler->campaigns, "on.match.campaign", false) &&
           (member(compiler, node, "topic") != NULL
                ? read_source(compiler, node)
                : read_status_or_flag(compiler, node, "on", &compiler->on));
}

static bool read_fields(struct compiler *compiler, yaml_node_t *node)
{
    const yaml_node_t *org = member(compiler, node, "org");
    const yaml_node_t *subject = member(compiler, node, "subject");
    compiler->once_per = member(compiler, node, "once_per");
    compiler->org = "org_id";
    compiler->subject = "message_id";
    return (org == NULL || read_field(compiler, org, "org", &compiler->org)) &&
           (subject == NULL || read_field(compiler, subject, "subject", &compiler->subject)) &&
           check_texts(compiler, compiler->once_per, "once_per", true);
}

/* The short form: one action instead of stages. */
static bool read_short(struct compiler *compiler, yaml_node_t *node)
{
    struct step *step = &compiler->steps[compiler->step_count++];
    yaml_node_t *webhook = member(compiler, node, "webhook");
    yaml_node_t *produce = member(compiler, node, "produce");
    const yaml_node_t *after = member(compiler, node, "wait");
    if ((webhook == NULL) == (produce == NULL))
        return fail(compiler, node, "needs either stages, or one of webhook and produce");
    *step = (struct step){.stage = "", .awaits = NO_CODE};
    if (after != NULL) {
        step->op = OP_WAIT;
        step->next = 1;
        if (!read_duration(compiler, after, "wait", &step->wait_ms))
            return false;
        step = &compiler->steps[compiler->step_count++];
        *step = (struct step){.stage = "", .awaits = NO_CODE};
    }
    step->next = RUN_ENDS;
    return read_codes(compiler, member(compiler, node, "if"), &step->when) &&
           read_codes(compiler, member(compiler, node, "unless"), &step->unless) &&
           (webhook != NULL ? read_webhook(compiler, webhook, step)
                            : read_produce(compiler, produce, step));
}

static bool read_stages(struct compiler *compiler, yaml_node_t *node)
{
    const yaml_node_t *stages = member(compiler, node, "stages");
    static const char *const shorts[] = {"webhook", "produce", "wait", "if", "unless"};
    if (stages == NULL)
        return read_short(compiler, node);
    for (size_t index = 0; index < sizeof(shorts) / sizeof(shorts[0]); index++)
        if (member(compiler, node, shorts[index]) != NULL)
            return fail(compiler, node, "has stages, so %s belongs into one of them",
                        shorts[index]);
    if (stages->type != YAML_SEQUENCE_NODE ||
        stages->data.sequence.items.start == stages->data.sequence.items.top)
        return fail(compiler, stages, "stages must be a list of stages");
    for (const yaml_node_item_t *item = stages->data.sequence.items.start;
         item < stages->data.sequence.items.top; item++)
        if (!read_stage(compiler, node_at(compiler, *item)))
            return false;
    return true;
}

static bool read_name(struct compiler *compiler, const yaml_node_t *list, const yaml_node_t *node,
                      const yaml_node_item_t *self)
{
    const yaml_node_t *name = member(compiler, node, "name");
    const char *text = "";
    if (name == NULL)
        return fail(compiler, node, "every pipeline needs a name");
    if (!read_text(compiler, name, "the name of a pipeline", &text))
        return false;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") !=
        strlen(text))
        return fail(compiler, name,
                    "\"%.63s\": a name has letters, digits, dots, dashes and underscores", text);
    for (const yaml_node_item_t *item = list->data.sequence.items.start; item < self; item++) {
        const yaml_node_t *other = member(compiler, node_at(compiler, *item), "name");
        if (strcmp(rcpt_config_scalar(other), text) == 0)
            return fail(compiler, name, "two pipelines are named \"%.63s\"", text);
    }
    compiler->pipeline = text;
    return true;
}

static bool read_pipeline(struct compiler *compiler, const yaml_node_t *list,
                          const yaml_node_item_t *item, struct rcpt_json *json)
{
    yaml_node_t *node = node_at(compiler, *item);
    compiler->pipeline = NULL;
    compiler->step_count = compiler->action_count = compiler->stage_count = 0;
    compiler->on = NO_CODE;
    compiler->source = NULL;
    compiler->orgs = compiler->campaigns = compiler->once_per = NULL;
    bool good = check_keys(compiler, node, "a pipeline",
                           "name on org subject once_per stages webhook produce wait if unless") &&
                read_name(compiler, list, node, item) &&
                read_on(compiler, member(compiler, node, "on")) && read_fields(compiler, node) &&
                read_stages(compiler, node) && resolve_stages(compiler) &&
                check_circles(compiler, node);
    if (good)
        pipelines_write(compiler, json);
    return good;
}

static bool read_list(struct compiler *compiler, const yaml_node_t *list, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        if (!read_pipeline(compiler, list, item, json))
            return false;
        compiler->made->count++;
    }
    rcpt_json_end_array(json);
    return true;
}

struct pipelines *pipelines_compile(const char *name, yaml_document_t *document, yaml_node_t *node,
                                    const struct rcpt_config *config, struct rcpt_error *error)
{
    struct pipelines *made = rcpt_calloc(1, sizeof(*made));
    struct compiler *compiler = rcpt_calloc(1, sizeof(*compiler));
    *compiler = (struct compiler){
        .name = name, .document = document, .config = config, .error = error, .made = made};
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = open_memstream(&made->definitions, &size);
    RCPT_ASSERT(out != NULL);
    rcpt_json_init(&json, out);
    bool good = read_list(compiler, node, &json);
    RCPT_ASSERT(fclose(out) == 0);
    free(compiler);
    if (good)
        return made;
    pipelines_free(made);
    return NULL;
}

struct pipelines *pipelines_take(struct rcpt_config *config)
{
    struct pipelines *taken = config->compiled;
    config->compiled = NULL;
    return taken;
}

void pipelines_free(struct pipelines *pipelines)
{
    if (pipelines == NULL)
        return;
    for (size_t index = 0; index < PIPELINES_MAX_TOPICS; index++) {
        free(pipelines->topics.names[index]);
        free(pipelines->sources.names[index]);
    }
    free(pipelines->definitions);
    free(pipelines);
}
