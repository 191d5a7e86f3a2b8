/* Parts of a pipeline in the file that are read in several places: keys, texts, durations, names of
 * statuses and flags. Each function says where the mistake stands. Called by pipelines.c. */
#include "pipelines_internal.h"

#include <stdarg.h>
#include <string.h>

#include "receiptd/config/value.h"

/* Before the pipeline's name is read, the error names the list alone. */
bool pipelines_fail(struct compiler *compiler, const yaml_node_t *node, const char *format, ...)
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

yaml_node_t *pipelines_node(const struct compiler *compiler, int index)
{
    return yaml_document_get_node(compiler->document, index);
}

/* Null means the same as a missing key. */
yaml_node_t *pipelines_member(const struct compiler *compiler, const yaml_node_t *mapping,
                              const char *name)
{
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = pipelines_node(compiler, pair->key);
        yaml_node_t *value = pipelines_node(compiler, pair->value);
        if (strcmp(rcpt_config_scalar(key), name) == 0)
            return rcpt_config_is_null(value) ? NULL : value;
    }
    return NULL;
}

/* `known` is a list in one text: the error prints it as it is. */
bool pipelines_check_keys(struct compiler *compiler, const yaml_node_t *mapping, const char *what,
                          const char *known)
{
    if (mapping->type != YAML_MAPPING_NODE)
        return pipelines_fail(compiler, mapping, "%s must be a mapping with %s", what, known);
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = pipelines_node(compiler, pair->key);
        if (key->type != YAML_SCALAR_NODE)
            return pipelines_fail(compiler, key, "a key must be plain text");
        const char *name = rcpt_config_scalar(key);
        size_t size = strlen(name);
        bool found = false;
        for (const char *at = known; !found && *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            found = length == size && memcmp(at, name, size) == 0;
            at += length;
        }
        if (!found)
            return pipelines_fail(compiler, key, "%s has no key \"%.40s\": it may have %s", what,
                                  name, known);
        /* Mappings are small, so each key is compared with all keys before it. */
        for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair;
             other++)
            if (strcmp(rcpt_config_scalar(pipelines_node(compiler, other->key)), name) == 0)
                return pipelines_fail(compiler, key, "\"%.40s\" is given twice", name);
    }
    return true;
}

/* 249 bytes is Kafka's limit for names of topics, the longest names that occur here. */
bool pipelines_read_text(struct compiler *compiler, const yaml_node_t *node, const char *what,
                         const char **text)
{
    if (node->type != YAML_SCALAR_NODE || rcpt_config_scalar(node)[0] == '\0' ||
        strlen(rcpt_config_scalar(node)) > 249)
        return pipelines_fail(compiler, node, "%s must be a text of 1 to 249 bytes", what);
    *text = rcpt_config_scalar(node);
    return true;
}

/* A column of the platform's may have any name, blanks included. Whether it exists shows where the
 * pipelines are stored. */
static bool is_field(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            return false;
    return strlen(text) <= 63;
}

bool pipelines_read_field(struct compiler *compiler, const yaml_node_t *node, const char *what,
                          const char **field)
{
    if (!pipelines_read_text(compiler, node, what, field))
        return false;
    return is_field(*field) ||
           pipelines_fail(compiler, node, "%s: \"%.40s\" is not the name of a field", what, *field);
}

/* A run may wait for a year; longer is a mistake of the unit. */
bool pipelines_read_duration(struct compiler *compiler, const yaml_node_t *node, const char *what,
                             int64_t *duration_ms)
{
    const char *text = "";
    const int64_t most = 366LL * 24 * 3600 * 1000;
    if (!pipelines_read_text(compiler, node, what, &text))
        return false;
    if (!rcpt_config_parse_number(RCPT_CONFIG_DURATION, text, duration_ms) || *duration_ms < 0 ||
        *duration_ms > most)
        return pipelines_fail(compiler, node,
                              "%s: \"%.40s\" is not a duration up to 366d, such as 2h", what, text);
    return true;
}

/* Statuses and flags share one space of names and codes. */
bool pipelines_read_code(struct compiler *compiler, const yaml_node_t *node, int16_t *code)
{
    const char *text = "";
    const struct rcpt_ladder *ladder = compiler->config->ladder;
    if (!pipelines_read_text(compiler, node, "a status or flag", &text))
        return false;
    int index = rcpt_ladder_find_name(ladder, text, strlen(text), NULL, 0);
    if (index < 0)
        return pipelines_fail(compiler, node, "there is no status or flag \"%.63s\" in the ladder",
                              text);
    *code = rcpt_ladder_entry(ladder, (size_t)index)->code;
    return true;
}

/* {status: S} or {flag: F}, of which exactly one. */
bool pipelines_read_status_or_flag(struct compiler *compiler, const yaml_node_t *mapping,
                                   const char *what, int16_t *code)
{
    const yaml_node_t *status = pipelines_member(compiler, mapping, "status");
    const yaml_node_t *flag = pipelines_member(compiler, mapping, "flag");
    const yaml_node_t *given = status != NULL ? status : flag;
    if (given == NULL || (status != NULL && flag != NULL))
        return pipelines_fail(compiler, mapping, "%s needs either status or flag", what);
    if (!pipelines_read_code(compiler, given, code))
        return false;
    /* Codes of flags begin above those of all statuses, so the code shows which one a name is. */
    if ((*code >= RCPT_LADDER_FIRST_FLAG_CODE) != (given == flag))
        return pipelines_fail(compiler, given, "\"%.63s\" is a %s", rcpt_config_scalar(given),
                              given == flag ? "status" : "flag");
    return true;
}

/* The ladder's names are capitals, so the word is none of them. */
static bool read_condition(struct compiler *compiler, const yaml_node_t *node, bool unless,
                           int16_t *code)
{
    if (strcmp(rcpt_config_scalar(node), "suppressed") != 0)
        return pipelines_read_code(compiler, node, code);
    *code = PIPELINES_SUPPRESSED;
    if (!unless)
        return pipelines_fail(compiler, node, "suppressed stands in unless alone, not in if");
    return compiler->config->suppression.subject != NULL ||
           pipelines_fail(compiler, node,
                          "suppressed needs the section suppression: set suppression.subject to "
                          "the column that says the person");
}

/* One name or a list of them. */
bool pipelines_read_codes(struct compiler *compiler, yaml_node_t *node, bool unless,
                          struct codes *codes)
{
    if (node == NULL)
        return true;
    if (node->type == YAML_SCALAR_NODE)
        return read_condition(compiler, node, unless, &codes->codes[codes->count++]);
    if (node->type != YAML_SEQUENCE_NODE)
        return pipelines_fail(compiler, node,
                              "expected the name of a status or flag, or a list of names");
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        if (codes->count == MAX_CODES)
            return pipelines_fail(compiler, node, "more than %u names", MAX_CODES);
        if (!read_condition(compiler, pipelines_node(compiler, *item), unless,
                            &codes->codes[codes->count++]))
            return false;
    }
    return true;
}

/* A call that is no message to the person says `capped: false`. */
bool pipelines_read_capped(struct compiler *compiler, const yaml_node_t *node, struct step *step)
{
    const yaml_node_t *capped = pipelines_member(compiler, node, "capped");
    if (capped == NULL)
        return true;
    step->uncapped = strcmp(rcpt_config_scalar(capped), "false") == 0;
    if (!step->uncapped && strcmp(rcpt_config_scalar(capped), "true") != 0)
        return pipelines_fail(compiler, capped, "capped must be true or false");
    return step->op == OP_WEBHOOK || step->op == OP_PRODUCE ||
           pipelines_fail(compiler, capped, "capped goes with webhook and produce only");
}

/* The nodes are written out later (pipelines_write.c); only their form is checked here. */
bool pipelines_check_texts(struct compiler *compiler, yaml_node_t *node, const char *what,
                           bool fields)
{
    const char *text = "";
    if (node == NULL)
        return true;
    if (node->type == YAML_SCALAR_NODE)
        return fields ? pipelines_read_field(compiler, node, what, &text)
                      : pipelines_read_text(compiler, node, what, &text);
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.start == node->data.sequence.items.top)
        return pipelines_fail(compiler, node, "%s must be a text or a list of texts", what);
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *each = pipelines_node(compiler, *item);
        if (!(fields ? pipelines_read_field(compiler, each, what, &text)
                     : pipelines_read_text(compiler, each, what, &text)))
            return false;
    }
    return true;
}

/* Stages may refer to later ones, so names are resolved when all stages are known. */
bool pipelines_find_stage(struct compiler *compiler, const yaml_node_t *node, size_t *first)
{
    const char *text = "";
    if (!pipelines_read_text(compiler, node, "the name of a stage", &text))
        return false;
    for (size_t index = 0; index < compiler->stage_count; index++) {
        if (strcmp(compiler->stages[index].name, text) == 0) {
            *first = compiler->stages[index].first;
            return true;
        }
    }
    return pipelines_fail(compiler, node, "there is no stage \"%.63s\"", text);
}
