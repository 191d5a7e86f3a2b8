/* Finds cycles in which no time passes: a run in one would turn as fast as the scheduler polls, and
 * call its receivers at each turn. While no time passes, what a message has reached stays as it is;
 * so for one status and one set of flags each step has one successor. The search tries every
 * status, and guesses a flag (set or not set) only where the way depends on it, with backtracking.
 * A call counts as taking no time. Called by pipelines.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines_internal.h"

/* Steps visited before the search gives up. A consistent way may take time that doubles with each
 * flag; no pipeline in use comes near this. */
#define MOST_VISITS 1000000u

struct assumption {
    int16_t code;
    bool reached;
};

/* From here no way turns while these flags are as they were. */
struct refuted {
    bool is_known;
    uint32_t flags, set;
};

struct walk {
    const struct compiler *compiler;
    int status;          /* of the message; RCPT_LADDER_NO_STATUS: there is none */
    uint32_t known, set; /* flags that are guessed; those of them that are set */
    uint32_t asked;      /* flags that the way depends on since the current step */
    /* The assumptions of the way so far, in its order. */
    struct assumption assumptions[MAX_STEPS * 2 * MAX_CODES];
    size_t count;
    size_t come_with[MAX_STEPS]; /* 1 and how many of them there were then; 0: is not on the way */
    struct refuted refuted[MAX_STEPS];
    size_t visits;
    size_t first, last; /* of the cycle */
};

/* ---- assumptions ---- */

/* Whether the person is suppressed is one more flag, of no message. */
static const struct rcpt_ladder_entry *entry_of(const struct walk *walk, int code)
{
    static const struct rcpt_ladder_entry suppressed = {.name = "suppressed",
                                                        .code = PIPELINES_SUPPRESSED,
                                                        .top = RCPT_LADDER_NO_STATUS,
                                                        .mask = UINT32_C(1)
                                                                << RCPT_LADDER_MAX_FLAGS,
                                                        .is_flag = true};
    if (code == PIPELINES_SUPPRESSED)
        return &suppressed;
    const struct rcpt_ladder *ladder = walk->compiler->config->ladder;
    int index = rcpt_ladder_find_code(ladder, code, NULL, 0);
    RCPT_ASSERT(index >= 0);
    return rcpt_ladder_entry(ladder, (size_t)index);
}

static bool is_on_path(const struct walk *walk, int16_t code)
{
    int status = walk->status;
    while (status != RCPT_LADDER_NO_STATUS && status != code)
        status = entry_of(walk, status)->parent;
    return status == code;
}

/* False: that contradicts the status, or an earlier assumption. */
static bool assume(struct walk *walk, int16_t code, bool reached)
{
    const struct rcpt_ladder_entry *entry = entry_of(walk, code);
    if (!entry->is_flag && is_on_path(walk, code) != reached)
        return false;
    /* A flag brings its status along, and there is none without a message. */
    if (entry->is_flag && reached && entry->top > walk->status)
        return false;
    walk->asked |= entry->mask;
    if ((walk->known & entry->mask) != 0 && ((walk->set & entry->mask) != 0) != reached)
        return false;
    walk->known |= entry->mask;
    walk->set |= reached ? entry->mask : 0;
    walk->assumptions[walk->count++] = (struct assumption){.code = code, .reached = reached};
    return true;
}

static bool assume_all(struct walk *walk, const struct codes *codes, bool reached)
{
    for (size_t index = 0; index < codes->count; index++)
        if (!assume(walk, codes->codes[index], reached))
            return false;
    return true;
}

struct mark {
    uint32_t known, set;
    size_t count;
};

static struct mark mark(const struct walk *walk)
{
    return (struct mark){.known = walk->known, .set = walk->set, .count = walk->count};
}

static void forget(struct walk *walk, struct mark since)
{
    walk->known = since.known;
    walk->set = since.set;
    walk->count = since.count;
}

/* ---- the way ---- */

/* Whether the way that goes on from one step to another comes back to a step of it. Its
 * assumptions then stay. */
static bool turns(struct walk *walk, size_t from, size_t to);

/* Guesses one flag; a guess that leads nowhere is taken back. */
static bool turns_if(struct walk *walk, size_t from, int16_t code, bool reached, size_t to)
{
    struct mark before = mark(walk);
    if (assume(walk, code, reached) && turns(walk, from, to))
        return true;
    forget(walk, before);
    return false;
}

/* The step's condition holds: all of `if`, none of `unless`. */
static bool turns_if_it_holds(struct walk *walk, size_t from)
{
    const struct step *step = &walk->compiler->steps[from];
    struct mark before = mark(walk);
    if (assume_all(walk, &step->when, true) && assume_all(walk, &step->unless, false) &&
        turns(walk, from, step->next))
        return true;
    forget(walk, before);
    return false;
}

/* The condition fails by at least one of its flags; each is tried as the reason. */
static bool turns_if_passed_over(struct walk *walk, size_t from)
{
    const struct step *step = &walk->compiler->steps[from];
    for (size_t index = 0; index < step->when.count; index++)
        if (turns_if(walk, from, step->when.codes[index], false, step->other))
            return true;
    for (size_t index = 0; index < step->unless.count; index++)
        if (turns_if(walk, from, step->unless.codes[index], true, step->other))
            return true;
    return false;
}

/* Follows the step as actions_claim() and actions_finish() do, where that takes no time. */
static bool turns_behind(struct walk *walk, size_t at)
{
    const struct step *step = &walk->compiler->steps[at];
    bool lasts = step->op == OP_WAIT && step->wait_ms > 0;
    if (step->op == OP_AWAIT)
        return turns_if(walk, at, step->awaits, true, step->next) ||
               (step->wait_ms == 0 && turns_if(walk, at, step->awaits, false, step->other));
    /* No variant comes back to the split (pipelines_check_split()). */
    if (step->op == OP_SPLIT)
        return turns_if_passed_over(walk, at);
    if (!lasts && step->next == step->other) /* its condition changes nothing of the way */
        return turns(walk, at, step->next);
    return (!lasts && turns_if_it_holds(walk, at)) || turns_if_passed_over(walk, at);
}

/* A step from which no way turned under the same flags needs no second visit. */
static bool is_refuted(struct walk *walk, size_t at)
{
    const struct refuted *refuted = &walk->refuted[at];
    if (!refuted->is_known || (walk->known & refuted->flags) != refuted->flags ||
        (walk->set & refuted->flags) != refuted->set)
        return false;
    walk->asked |= refuted->flags;
    return true;
}

/* Whether the way from one step to another comes back to one of its own steps. On success the
 * guesses stay, for the message. */
static bool turns(struct walk *walk, size_t from, size_t to)
{
    if (walk->come_with[to] != 0) {
        walk->first = to;
        walk->last = from;
        return true;
    }
    if (walk->compiler->steps[to].op == OP_END || is_refuted(walk, to) ||
        walk->visits == MOST_VISITS)
        return false;
    walk->visits++;
    uint32_t asked = walk->asked, known = walk->known;
    walk->asked = 0;
    walk->come_with[to] = walk->count + 1;
    if (turns_behind(walk, to))
        return true;
    walk->come_with[to] = 0;
    uint32_t because = walk->asked & known;
    walk->refuted[to] =
        (struct refuted){.is_known = true, .flags = because, .set = walk->set & because};
    walk->asked = asked | because;
    return false;
}

/* ---- the message ---- */

static void append(char *text, size_t size, const char *format, ...) RCPT_PRINTF(3, 4);

static void append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

/* Only the guesses inside the cycle matter to the reader, each once. */
static void say_codes(const struct walk *walk, bool reached, char *text, size_t size)
{
    int16_t codes[RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS + 1];
    size_t count = 0;
    for (size_t index = walk->come_with[walk->first] - 1; index < walk->count; index++) {
        const struct assumption *each = &walk->assumptions[index];
        bool is_new = each->reached == reached;
        for (size_t other = 0; is_new && other < count; other++)
            is_new = codes[other] != each->code;
        if (is_new)
            codes[count++] = each->code;
    }
    if (count == 0)
        return;
    append(text, size, "%s %s", text[0] != '\0' ? "," : "", reached ? "once" : "as long as");
    for (size_t index = 0; index < count; index++)
        append(text, size, "%s %s",
               index == 0           ? ""
               : index + 1 == count ? " and"
                                    : ",",
               entry_of(walk, codes[index])->name);
    append(text, size, " %s%s reached", count == 1 ? "is" : "are", reached ? "" : " not");
}

/* Every cycle comes through the first step of a stage, since only moves and `else` lead back. */
static bool turns_with(struct walk *walk, int status)
{
    const struct compiler *compiler = walk->compiler;
    walk->status = status;
    memset(walk->refuted, 0, sizeof(walk->refuted));
    for (size_t index = 0; index < compiler->stage_count; index++)
        if (turns(walk, compiler->stages[index].first, compiler->stages[index].first))
            return true;
    return false;
}

enum cycle_kind pipelines_find_cycle(const struct compiler *compiler, struct cycle *cycle)
{
    const struct rcpt_ladder *ladder = compiler->config->ladder;
    struct walk *walk = rcpt_calloc(1, sizeof(*walk));
    walk->compiler = compiler;
    bool found = turns_with(walk, RCPT_LADDER_NO_STATUS);
    for (size_t index = 0; !found && index < rcpt_ladder_entry_count(ladder); index++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, index);
        found = !entry->is_flag && turns_with(walk, entry->code);
    }
    if (found) {
        cycle->last = walk->last;
        cycle->when[0] = '\0';
        say_codes(walk, true, cycle->when, sizeof(cycle->when));
        say_codes(walk, false, cycle->when, sizeof(cycle->when));
    }
    enum cycle_kind kind = found                        ? CYCLE_TURNS
                           : walk->visits < MOST_VISITS ? CYCLE_NONE
                                                        : CYCLE_UNCLEAR;
    free(walk);
    return kind;
}
