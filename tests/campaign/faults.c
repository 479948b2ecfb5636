/* Loaded before the C library: calls that change files below FAULT_UNDER are counted, and some of them fail.
 *
 *   FAULT_CALL   write, sync, name (rename, link, unlink, mkdir, creation) or short (half of a write is done)
 *   FAULT_AT     the first call that fails, from 0; FAULT_COUNT how many fail in a row
 *   FAULT_ERRNO  the error
 *   FAULT_FIRED  a file that is made when the first one fails
 *
 * A sync that fails is not done: what was written before is where a device lost it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static const char *call, *under, *fired;
static long at, count;
static int error;

__attribute__((constructor)) static void begin(void) {
    const char *number;
    call = getenv("FAULT_CALL");
    under = getenv("FAULT_UNDER");
    fired = getenv("FAULT_FIRED");
    at = (number = getenv("FAULT_AT")) ? atol(number) : 0;
    count = (number = getenv("FAULT_COUNT")) ? atol(number) : 1;
    error = (number = getenv("FAULT_ERRNO")) ? atoi(number) : EIO;
}

static int is_under(const char *path) {
    return path && under && !strncmp(path, under, strlen(under));
}

/* Whether this call fails. */
static int fails(const char *kind, const char *path) {
    if (!call || strcmp(call, kind) || !is_under(path))
        return 0;
    long number = atomic_fetch_add(&calls, 1);
    if (number < at || number >= at + count)
        return 0;
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    int file = fired && number == at ? real(fired, O_CREAT | O_WRONLY, 0600) : -1;
    if (file >= 0)
        close(file);
    errno = error;
    return 1;
}

static int fails_at(const char *kind, int file) {
    char link[64], path[4096];
    if (!call || strcmp(call, kind))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return fails(kind, path);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) \
        real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int file, const void *bytes, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (fails_at("write", file))
        return -1;
    return real(file, bytes, size > 1 && fails_at("short", file) ? size / 2 : size);
}

#define PWRITE(name) \
    ssize_t name(int file, const void *bytes, size_t size, off64_t place) { \
        REAL(ssize_t, #name, int, const void *, size_t, off64_t); \
        return fails_at("write", file) ? -1 : real(file, bytes, size, place); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(name) \
    int name(int file) { \
        REAL(int, #name, int); \
        return fails_at("sync", file) ? -1 : real(file); \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TWO_NAMES(name) \
    int name(const char *from, const char *to) { \
        REAL(int, #name, const char *, const char *); \
        return fails("name", to) ? -1 : real(from, to); \
    }
TWO_NAMES(rename)
TWO_NAMES(link)

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return fails("name", to) ? -1 : real(from_at, from, to_at, to, flags);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return fails("name", path) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return fails("name", path) ? -1 : real(path, mode);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        return flags & O_CREAT && fails("name", path) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
