/* Values that come from elsewhere: `${NAME}` from the environment, `file:PATH` from a file. The
 * result is bounded and UTF-8. Errors name variables and paths, never values. Called by
 * check_value.c. */
#include "expand.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "print.h"
#include "receiptd/base/buffer.h"
#include "receiptd/base/utf8.h"
#include "receiptd/config/value.h"

/* False, and nothing is appended, above the limit. */
static bool append(struct rcpt_buffer *text, const char *bytes, size_t size)
{
    if (size > RCPT_CONFIG_MAX_VALUE - text->size)
        return false;
    rcpt_buffer_append(text, bytes, size);
    return true;
}

/* The length of a variable's name at the beginning of the text; 0: none. */
static size_t name_size(const char *text)
{
    size_t size = 0;
    if (isdigit((unsigned char)text[0]))
        return 0;
    while (isalnum((unsigned char)text[size]) || text[size] == '_')
        size++;
    return size;
}

/* `at` stands behind "${". Returns where the text goes on, or NULL. */
static const char *expand_one(struct rcpt_buffer *out, const char *at, char problem[160])
{
    size_t size = name_size(at);
    const char *end = strchr(at, '}');
    const char *fallback = strncmp(at + size, ":-", 2) == 0 ? at + size + 2 : NULL;
    if (size == 0 || size > 100 || end == NULL || (fallback == NULL && at + size != end)) {
        snprintf(problem, 160, "has a ${ that does not begin ${NAME} or ${NAME:-default}");
        return NULL;
    }
    char name[101];
    snprintf(name, sizeof(name), "%.*s", (int)size, at);
    const char *value = getenv(name);
    if (value == NULL && fallback == NULL) {
        snprintf(problem, 160, "environment variable %s is not set", name);
        return NULL;
    }
    /* As in a shell, `:-` also replaces an empty variable. */
    bool done = value == NULL || (value[0] == '\0' && fallback != NULL)
                    ? append(out, fallback, (size_t)(end - fallback))
                    : append(out, value, strlen(value));
    if (!done) {
        snprintf(problem, 160, "is longer than 64 KiB with ${%.100s}", name);
        return NULL;
    }
    return end + 1;
}

/* One pass, without recursion: a variable's value that itself contains ${ is not expanded again.
 * UTF-8 is checked at the end, because the environment may hold any bytes. */
char *rcpt_config_expand(const char *text, char problem[160])
{
    struct rcpt_buffer out = {0};
    bool fits = append(&out, "", 0);
    while (*text != '\0' && fits) {
        if (strncmp(text, "$${", 3) == 0) {
            fits = append(&out, "${", 2);
            text += 3;
        } else if (strncmp(text, "${", 2) == 0) {
            text = expand_one(&out, text + 2, problem);
            if (text == NULL)
                goto failed;
        } else {
            fits = append(&out, text++, 1);
        }
    }
    if (!fits) {
        snprintf(problem, 160, "is longer than 64 KiB");
        goto failed;
    }
    if (!rcpt_utf8_is_text(out.bytes, out.size)) {
        snprintf(problem, 160, "is not valid UTF-8 once the environment is put in");
        goto failed;
    }
    return out.bytes;
failed:
    rcpt_buffer_free(&out);
    return NULL;
}

/* A default that stands in the text itself does not count as coming from the environment. */
bool rcpt_config_uses_environment(const char *text)
{
    char name[101];
    while ((text = strstr(text, "${")) != NULL) {
        text += 2;
        size_t size = name_size(text);
        snprintf(name, sizeof(name), "%.*s", (int)size, text);
        const char *value = getenv(name);
        if (size > 0 && value != NULL && value[0] != '\0')
            return true;
    }
    return false;
}

/* A path of a secret is relative to the configuration, not to the working directory, which differs
 * under systemd. */
char *rcpt_config_absolute_path(const char *path, const char *config_name)
{
    const char *slash = strrchr(config_name, '/');
    if (path[0] == '/' || slash == NULL)
        return rcpt_strdup(path);
    size_t folder = (size_t)(slash - config_name) + 1;
    char *joined = rcpt_malloc(folder + strlen(path) + 1);
    memcpy(joined, config_name, folder);
    memcpy(joined + folder, path, strlen(path) + 1);
    return joined;
}

/* Without O_NONBLOCK a named pipe would block the start until a writer opens it. */
static int open_regular(const char *path, bool *is_open, const char **problem)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *problem = strerror(errno);
        return -1;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        *problem = "not a regular file";
        close(fd);
        return -1;
    }
    *is_open = (status.st_mode & S_IRWXO) != 0;
    return fd;
}

/* Editors end a file with a newline, which is not part of the secret; one is cut, no more. */
static char *read_text(int fd, size_t most, const char **problem)
{
    char *bytes = rcpt_malloc(most + 1);
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && size <= most) {
        got = read(fd, bytes + size, most + 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        *problem = strerror(errno);
    else if (size > most)
        *problem = most == RCPT_CONFIG_MAX_VALUE ? "larger than 64 KiB" : "larger than 16 MiB";
    else if (!rcpt_utf8_is_text(bytes, size))
        *problem = "not UTF-8 text";
    if (*problem != NULL) {
        free(bytes);
        return NULL;
    }
    if (size > 0 && bytes[size - 1] == '\n')
        size--;
    bytes[size] = '\0';
    return bytes;
}

static char *read_whole(const char *path, const char *config_name, size_t most, bool *is_open,
                        char problem[160])
{
    const char *reason = NULL;
    char *contents = NULL;
    char *absolute = rcpt_config_absolute_path(path, config_name);
    int fd = open_regular(absolute, is_open, &reason);
    if (fd >= 0) {
        contents = read_text(fd, most, &reason);
        close(fd);
    }
    if (contents == NULL) {
        /* A URL may stand here by mistake; its key must not reach the log. */
        char *shown = rcpt_config_redact_url(absolute);
        snprintf(problem, 160, "cannot read file %.100s: %s", shown, reason);
        free(shown);
    }
    free(absolute);
    return contents;
}

/* The file's mode is reported, not refused: check-config prints a note for it. */
char *rcpt_config_read_secret(const char *path, const char *config_name, bool *is_open,
                              char problem[160])
{
    return read_whole(path, config_name, RCPT_CONFIG_MAX_VALUE, is_open, problem);
}

char *rcpt_config_read_list(const char *path, const char *config_name, char problem[160])
{
    bool is_open = false;
    return read_whole(path, config_name, RCPT_CONFIG_MAX_LIST, &is_open, problem);
}
