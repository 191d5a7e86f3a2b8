/* The embedded page: the files of src/serve/page by path. All of its views are one document, which
 * finds out from the address what to show. Called by serve.c. */
#include "internal.h"

static const struct {
    const char *path, *file, *type;
} paths[] = {
    {"/", "index.html", "text/html; charset=utf-8"},
    {"/support", "index.html", "text/html; charset=utf-8"},
    {"/operate", "index.html", "text/html; charset=utf-8"},
    {"/assets/app.js", "app.js", "text/javascript; charset=utf-8"},
    {"/assets/app.css", "app.css", "text/css; charset=utf-8"},
};
static const char campaign[] = "/campaign/";

static bool answer(struct rcpt_http_request *http, const char *file, const char *type)
{
    for (const struct serve_file *each = serve_files; each->name != NULL; each++)
        if (strcmp(each->name, file) == 0) {
            serve_answer_body(http, type, "no-cache", each->text, each->size);
            return true;
        }
    return false;
}

bool serve_page_answer(struct rcpt_http_request *http, struct rcpt_http_text path)
{
    struct rcpt_text given = {path.bytes, path.size};
    for (size_t index = 0; index < sizeof(paths) / sizeof(paths[0]); index++)
        if (rcpt_text_is(given, paths[index].path))
            return answer(http, paths[index].file, paths[index].type);
    return given.size >= sizeof(campaign) && rcpt_text_begins(given, campaign) &&
           answer(http, paths[0].file, paths[0].type);
}
