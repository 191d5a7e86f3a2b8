/* Reads JSON as a stream of tokens: a loop over the text and a bit for each open container, no
 * recursion. The state is the set of tokens that may come next (enum expected). Called by
 * document.c, and by the readers of records in src/core. tests/fuzz/fuzz_json.c compares it with
 * another implementation.
 */
#include "receiptd/base/json_read.h"

#include <string.h>

#include "receiptd/base/buffer.h"

/* Inside an object a value is followed by a comma or '}', inside an array by a comma or ']'. A bit
 * of `objects` tells which of the two it is. */
enum expected {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* behind '[' */
    EXPECT_KEY,          /* behind a comma */
    EXPECT_KEY_OR_END,   /* behind '{' */
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING, /* the outermost value has ended */
};

struct reading {
    struct rcpt_text input;
    size_t at;
    rcpt_json_callback on_token;
    void *context;
    enum expected expected;
    unsigned depth;
    uint32_t objects; /* bit d: the container at depth d is an object */
    struct rcpt_buffer unescaped;
    struct rcpt_text text; /* of the string read last */
    bool has_half_surrogate;
};

_Static_assert(RCPT_JSON_READ_MAX_DEPTH <= 32, "objects has a bit for each container");

/* Each step returns NULL, or why the input ends here; `at` is then where. */
static const char stopped[] = "stopped";
static const char too_deep[] = "nested too deep";

/* -1 at the end of the input, which equals no character: no caller checks the end by itself. */
static int peek(const struct reading *reading)
{
    return reading->at < reading->input.size ? (unsigned char)reading->input.at[reading->at] : -1;
}

static bool take(struct reading *reading, int character)
{
    bool found = peek(reading) == character;
    reading->at += found;
    return found;
}

/* The four blanks of RFC 8259. */
static void skip_blanks(struct reading *reading)
{
    int next = peek(reading);
    while (next == ' ' || next == '\n' || next == '\r' || next == '\t') {
        reading->at++;
        next = peek(reading);
    }
}

/* A token's `end` is the first byte behind it: containers get their raw bytes by it. */
static const char *report(struct reading *reading, enum rcpt_json_kind kind, struct rcpt_text text)
{
    struct rcpt_json_token token = {.kind = kind,
                                    .text = text,
                                    .end = reading->at,
                                    .depth = reading->depth,
                                    .has_half_surrogate =
                                        kind == RCPT_JSON_STRING && reading->has_half_surrogate};
    return reading->on_token(reading->context, &token) ? NULL : stopped;
}

/* ---- scalars ---- */

/* One digit at least. */
static bool take_digits(struct reading *reading)
{
    size_t start = reading->at;
    while (peek(reading) >= '0' && peek(reading) <= '9')
        reading->at++;
    return reading->at > start;
}

/* The grammar of RFC 8259. The number stays text: its reader decides whether an integer or a double
 * can hold it. */
static const char *read_number(struct reading *reading)
{
    size_t start = reading->at;
    take(reading, '-');
    if (!take(reading, '0') && !take_digits(reading))
        return "a digit is missing";
    if (take(reading, '.') && !take_digits(reading))
        return "a digit is missing behind the point";
    if (take(reading, 'e') || take(reading, 'E')) {
        if (!take(reading, '+'))
            take(reading, '-');
        if (!take_digits(reading))
            return "a digit is missing in the exponent";
    }
    return report(reading, RCPT_JSON_NUMBER,
                  rcpt_text_part(reading->input, start, reading->at - start));
}

/* true, false and null, in lower case only. */
static const char *read_word(struct reading *reading, enum rcpt_json_kind kind,
                             struct rcpt_text word)
{
    struct rcpt_text found = rcpt_text_part(reading->input, reading->at, word.size);
    if (!rcpt_text_is(found, word.at))
        return "not a value";
    reading->at += word.size;
    return report(reading, kind, kind == RCPT_JSON_NULL ? RCPT_TEXT("") : word);
}

/* ---- strings ---- */

/* The four digits of \uXXXX; -1 if they are none. */
static long read_unit(struct reading *reading)
{
    long unit = 0;
    for (unsigned digit = 0; digit < 4; digit++, reading->at++) {
        int value = rcpt_text_hex_digit(peek(reading));
        if (value < 0)
            return -1;
        unit = unit << 4 | value;
    }
    return unit;
}

/* The last bytes of the sequence are filled first, six bits each; the first byte takes the rest. */
static void put_code_point(struct rcpt_buffer *out, unsigned long code)
{
    unsigned char bytes[4];
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t index = size - 1; index > 0; index--, code >>= 6)
        bytes[index] = (unsigned char)(0x80 | (code & 0x3f));
    bytes[0] = (unsigned char)(first[size] | code);
    rcpt_buffer_append(out, bytes, size);
}

/* Behind "\u". Half a surrogate pair becomes '?'. */
static const char *unescape_unit(struct reading *reading)
{
    long unit = read_unit(reading);
    if (unit >= 0xd800 && unit < 0xdc00 && reading->input.size - reading->at >= 2 &&
        memcmp(reading->input.at + reading->at, "\\u", 2) == 0) {
        size_t second_at = reading->at;
        reading->at += 2;
        long second = read_unit(reading);
        if (second >= 0xdc00 && second < 0xe000)
            unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
        else
            reading->at = second_at; /* an escape of its own */
    }
    if (unit < 0)
        return "four hexadecimal digits are missing";
    bool is_half = unit >= 0xd800 && unit < 0xe000;
    reading->has_half_surrogate |= is_half;
    put_code_point(&reading->unescaped, is_half ? '?' : (unsigned long)unit);
    return NULL;
}

static const char *unescape(struct reading *reading)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    int escape = peek(reading);
    if (take(reading, 'u'))
        return unescape_unit(reading);
    const char *found = escape > 0 ? strchr(escapes, escape) : NULL;
    if (found == NULL)
        return "no such escape";
    reading->at++;
    rcpt_buffer_append(&reading->unescaped, &meant[found - escapes], 1);
    return NULL;
}

/* Bytes that stand for themselves. */
static struct rcpt_text take_plain(struct reading *reading)
{
    size_t start = reading->at;
    while (peek(reading) >= ' ' && peek(reading) != '"' && peek(reading) != '\\')
        reading->at++;
    return rcpt_text_part(reading->input, start, reading->at - start);
}

/* Behind the opening quote. Only a string with escapes is copied. */
static const char *read_string(struct reading *reading)
{
    reading->text = take_plain(reading);
    reading->has_half_surrogate = false;
    if (take(reading, '"'))
        return NULL;
    reading->unescaped.size = 0;
    rcpt_buffer_append(&reading->unescaped, reading->text.at, reading->text.size);
    while (take(reading, '\\')) {
        const char *fault = unescape(reading);
        if (fault != NULL)
            return fault;
        struct rcpt_text plain = take_plain(reading);
        rcpt_buffer_append(&reading->unescaped, plain.at, plain.size);
    }
    reading->text = (struct rcpt_text){reading->unescaped.bytes, reading->unescaped.size};
    if (take(reading, '"'))
        return NULL;
    return peek(reading) < 0 ? "the string does not end" : "a control character in a string";
}

/* ---- containers ---- */

/* The depth is bounded by the bits of `objects`; deeper input is refused, not recursed into. */
static const char *begin(struct reading *reading, enum rcpt_json_kind kind)
{
    uint32_t bit = UINT32_C(1) << (reading->depth & 31);
    if (reading->depth == RCPT_JSON_READ_MAX_DEPTH)
        return too_deep;
    reading->at++;
    const char *fault = report(reading, kind, RCPT_TEXT(""));
    bool is_object = kind == RCPT_JSON_OBJECT;
    reading->objects = is_object ? reading->objects | bit : reading->objects & ~bit;
    reading->expected = is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    reading->depth++;
    return fault;
}

static void expect_next(struct reading *reading)
{
    reading->expected = reading->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

/* The caller has compared the bracket with the container's kind. */
static const char *end(struct reading *reading)
{
    reading->at++;
    reading->depth--;
    expect_next(reading);
    return report(reading, RCPT_JSON_END, RCPT_TEXT(""));
}

static const char *read_key(struct reading *reading)
{
    if (!take(reading, '"'))
        return "expected a key";
    const char *fault = read_string(reading);
    if (fault == NULL)
        fault = report(reading, RCPT_JSON_KEY, reading->text);
    if (fault != NULL)
        return fault;
    skip_blanks(reading);
    reading->expected = EXPECT_VALUE;
    return take(reading, ':') ? NULL : "expected ':'";
}

/* The first byte decides which scalar it can be. */
static const char *read_scalar(struct reading *reading)
{
    switch (peek(reading)) {
    case '"': {
        reading->at++;
        const char *fault = read_string(reading);
        return fault != NULL ? fault : report(reading, RCPT_JSON_STRING, reading->text);
    }
    case 't':
        return read_word(reading, RCPT_JSON_BOOLEAN, RCPT_TEXT("true"));
    case 'f':
        return read_word(reading, RCPT_JSON_BOOLEAN, RCPT_TEXT("false"));
    case 'n':
        return read_word(reading, RCPT_JSON_NULL, RCPT_TEXT("null"));
    case '-':
    case '0' ... '9':
        return read_number(reading);
    default:
        return "expected a value";
    }
}

static const char *read_value(struct reading *reading)
{
    int next = peek(reading);
    if (next == '{' || next == '[')
        return begin(reading, next == '{' ? RCPT_JSON_OBJECT : RCPT_JSON_ARRAY);
    const char *fault = read_scalar(reading);
    expect_next(reading);
    return fault;
}

/* Reads one token, or a comma. The caller has skipped blanks, and at least one byte is left. */
static const char *step(struct reading *reading)
{
    bool in_object = reading->depth > 0 && (reading->objects >> (reading->depth - 1) & 1) != 0;
    bool at_end = reading->depth > 0 && peek(reading) == (in_object ? '}' : ']');
    switch (reading->expected) {
    case EXPECT_VALUE_OR_END:
        return at_end ? end(reading) : read_value(reading);
    case EXPECT_VALUE:
        return read_value(reading);
    case EXPECT_KEY_OR_END:
        return at_end ? end(reading) : read_key(reading);
    case EXPECT_KEY:
        return read_key(reading);
    case EXPECT_COMMA_OR_END:
        if (at_end)
            return end(reading);
        reading->expected = in_object ? EXPECT_KEY : EXPECT_VALUE;
        return take(reading, ',') ? NULL
               : in_object        ? "expected ',' or '}'"
                                  : "expected ',' or ']'";
    default:
        return "trailing bytes";
    }
}

/* `stopped` and `too_deep` are compared by address: no other fault has their text. */
enum rcpt_json_result rcpt_json_read(struct rcpt_text input, rcpt_json_callback on_token,
                                     void *context, struct rcpt_json_fault *fault)
{
    struct reading reading = {.input = input, .on_token = on_token, .context = context};
    const char *text = NULL;
    reading.at = input.size - rcpt_text_skip_mark(input).size; /* RFC 8259, section 8.1 */
    skip_blanks(&reading);
    while (text == NULL && (reading.at < input.size || reading.expected != EXPECT_NOTHING)) {
        text = reading.at < input.size ? step(&reading) : "the text ends too early";
        if (text == NULL)
            skip_blanks(&reading);
    }
    rcpt_buffer_free(&reading.unescaped);
    if (text == NULL)
        return RCPT_JSON_OK;
    if (fault != NULL)
        *fault = (struct rcpt_json_fault){reading.at, text};
    return text == stopped    ? RCPT_JSON_STOPPED
           : text == too_deep ? RCPT_JSON_TOO_DEEP
                              : RCPT_JSON_INVALID;
}

/* A string without escapes lies in the input and is borrowed; an unescaped one lies in the reader's
 * buffer, which the next string reuses, so it is copied. */
struct rcpt_text rcpt_json_keep(struct rcpt_text input, struct rcpt_text text,
                                struct rcpt_arena *arena)
{
    if (text.size == 0)
        return RCPT_TEXT("");
    return (uintptr_t)text.at - (uintptr_t)input.at < input.size ? text
                                                                 : rcpt_text_copy(arena, text);
}
