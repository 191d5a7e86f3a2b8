/* The embedded page: the files of src/serve/page by path. All of its views are one document, which
 * finds out from the address what to show. Called by serve.c. */
#include "internal.h"

#include "receiptd/base/error.h"

static const struct {
    const char *path, *file, *type;
} paths[] = {
    {"/", "index.html", "text/html; charset=utf-8"},
    {"/support", "index.html", "text/html; charset=utf-8"},
    {"/operate", "index.html", "text/html; charset=utf-8"},
};
static const char campaign[] = "/campaign/", assets[] = "/assets/";
static const struct {
    const char *suffix, *type;
} types[] = {
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
};

static bool answer(struct serve_request *request, const char *file, const char *type)
{
    for (const struct serve_file *each = serve_files; each->name != NULL; each++)
        if (strcmp(each->name, file) == 0) {
            serve_answer_body(request, type, "no-cache", each->text, each->size);
            return true;
        }
    return false;
}

/* Finds the asset by its name; the document itself is not an asset. */
static bool answer_asset(struct serve_request *request, struct rcpt_text name)
{
    for (const struct serve_file *each = serve_files; each->name != NULL; each++) {
        const char *suffix = strrchr(each->name, '.');
        for (size_t index = 0; index < RCPT_COUNT_OF(types); index++)
            if (rcpt_text_is(name, each->name) && suffix != NULL &&
                strcmp(suffix, types[index].suffix) == 0)
                return answer(request, each->name, types[index].type);
    }
    return false;
}

bool serve_page_answer(struct serve_request *request, struct rcpt_http_text path)
{
    struct rcpt_text given = {path.bytes, path.size};
    for (size_t index = 0; index < RCPT_COUNT_OF(paths); index++)
        if (rcpt_text_is(given, paths[index].path))
            return answer(request, paths[index].file, paths[index].type);
    if (rcpt_text_begins(given, assets))
        return answer_asset(request, (struct rcpt_text){given.at + sizeof(assets) - 1,
                                                        given.size - (sizeof(assets) - 1)});
    return given.size >= sizeof(campaign) && rcpt_text_begins(given, campaign) &&
           answer(request, paths[0].file, paths[0].type);
}
