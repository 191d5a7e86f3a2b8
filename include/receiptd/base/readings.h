/* The readings of a text of any origin once its escapes are undone: JSON (\u00e4, \/), percent
 * escapes (%40, also of forms, where + is a blank), base64 and Latin-1, each also inside another.
 *
 * For searching: nothing says which escapes a writer used, so each is undone everywhere and the
 * result is one more reading. No format is checked. Pure; memory from an arena.
 */
#ifndef RECEIPTD_BASE_READINGS_H
#define RECEIPTD_BASE_READINGS_H

#include "receiptd/base/text.h"

/* Forms inside forms that are undone: a base64 record of JSON whose text is JSON in a form. */
#define RCPT_READINGS_DEPTH 4u
#define RCPT_READINGS_MOST  64u /* of one text; those with fewer escapes undone come first */

/* False: stop. The reading lives as long as the arena. */
typedef bool (*rcpt_reading_callback)(void *context, struct rcpt_text reading);

/* The text itself is the first reading; no reading comes twice. False: the callback stopped. */
bool rcpt_readings_each(struct rcpt_text text, struct rcpt_arena *arena,
                        rcpt_reading_callback on_reading, void *context);

#endif
