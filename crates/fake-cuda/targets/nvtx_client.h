/* A small NVTX client: what the header-only NVTX does in a program. The first call loads the library that
 * NVTX_INJECTION64_PATH names and hands it tables to put its functions in; without one, calls do nothing. */
#ifndef TRACESMITH_NVTX_CLIENT_H
#define TRACESMITH_NVTX_CLIENT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returned by push and pop when nobody listens. */
#define NVTX_NOT_TRACKED (-2)

typedef void (*nvtx_function)(void);

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
    } payload;
    int32_t message_type;
    union {
        const char *ascii;
        void *registered;
    } message;
} nvtx_event;

enum { NVTX_CORE = 1, NVTX_CORE2 = 5 };
enum { NVTX_MARK_A = 2, NVTX_START_A = 5, NVTX_END = 7, NVTX_PUSH_EX = 8, NVTX_PUSH_A = 9, NVTX_POP = 11,
       NVTX_CATEGORY_A = 12, NVTX_THREAD_A = 14, NVTX_CORE_SIZE = 16 };
enum { NVTX_DOMAIN_MARK_EX = 1, NVTX_DOMAIN_PUSH_EX = 4, NVTX_DOMAIN_POP = 5, NVTX_DOMAIN_CATEGORY_A = 8,
       NVTX_DOMAIN_STRING_A = 10, NVTX_DOMAIN_CREATE_A = 12, NVTX_DOMAIN_DESTROY = 14, NVTX_CORE2_SIZE = 16 };

static nvtx_function nvtx_core[NVTX_CORE_SIZE], nvtx_core2[NVTX_CORE2_SIZE];
/* Each table ends with a null pointer; the first entry is not used. */
static nvtx_function *nvtx_core_slots[NVTX_CORE_SIZE + 1], *nvtx_core2_slots[NVTX_CORE2_SIZE + 1];

/* CUDA, OpenCL, CUDA runtime, synchronisation: how many entries each has. */
static const unsigned NVTX_UNUSED_SIZES[] = {0, 0, 9, 15, 7, 0, 7};
/* Tables of the modules that this client never calls; tools want to find them all the same. */
static nvtx_function nvtx_unused[16], *nvtx_unused_slots[17];

static int nvtx_get_table(int module, nvtx_function ***table, unsigned *size) {
    if (module < 1 || module > 6)
        return 0;
    nvtx_function **slots = module == NVTX_CORE    ? nvtx_core_slots
                            : module == NVTX_CORE2 ? nvtx_core2_slots
                                                   : nvtx_unused_slots;
    if (table)
        *table = slots;
    if (size)
        *size = module == NVTX_CORE || module == NVTX_CORE2 ? 16 : NVTX_UNUSED_SIZES[module];
    return 1;
}

static uint32_t nvtx_tool_version;
static void nvtx_set_tool_version(uint32_t version) { nvtx_tool_version = version; }

static const struct {
    size_t size;
    int (*get_table)(int, nvtx_function ***, unsigned *);
} nvtx_callbacks = {sizeof nvtx_callbacks, nvtx_get_table};

static const struct {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t);
} nvtx_version = {sizeof nvtx_version, 3, 0, nvtx_set_tool_version};

static const void *nvtx_export_table(uint32_t id) {
    return id == 1 ? (const void *)&nvtx_callbacks : id == 3 ? (const void *)&nvtx_version : NULL;
}

/* 1 when a tool took the tables. */
static int nvtx_start(void) {
    static int state = -1;
    if (state >= 0)
        return state;
    state = 0;
    for (int i = 1; i < 16; i++) {
        nvtx_core_slots[i] = &nvtx_core[i];
        nvtx_core2_slots[i] = &nvtx_core2[i];
        nvtx_unused_slots[i] = &nvtx_unused[i];
    }
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    if (!library)
        return state;
    int (*initialize)(const void *(*)(uint32_t));
    *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    state = initialize && initialize(nvtx_export_table) != 0;
    return state;
}

#define NVTX_CALL(table, slot, type, otherwise, ...) \
    (nvtx_start() && table[slot] ? ((type)table[slot])(__VA_ARGS__) : otherwise)

static void nvtx_mark(const char *text) { NVTX_CALL(nvtx_core, NVTX_MARK_A, void (*)(const char *), (void)0, text); }
static int nvtx_push(const char *text) {
    return NVTX_CALL(nvtx_core, NVTX_PUSH_A, int (*)(const char *), NVTX_NOT_TRACKED, text);
}
static int nvtx_pop(void) { return NVTX_CALL(nvtx_core, NVTX_POP, int (*)(void), NVTX_NOT_TRACKED); }
static uint64_t nvtx_begin(const char *text) {
    return NVTX_CALL(nvtx_core, NVTX_START_A, uint64_t(*)(const char *), 0, text);
}
static void nvtx_end(uint64_t range) { NVTX_CALL(nvtx_core, NVTX_END, void (*)(uint64_t), (void)0, range); }
static void nvtx_name_category(uint32_t category, const char *name) {
    NVTX_CALL(nvtx_core, NVTX_CATEGORY_A, void (*)(uint32_t, const char *), (void)0, category, name);
}
static void nvtx_name_thread(uint32_t thread, const char *name) {
    NVTX_CALL(nvtx_core, NVTX_THREAD_A, void (*)(uint32_t, const char *), (void)0, thread, name);
}
static int nvtx_push_event(const nvtx_event *event) {
    return NVTX_CALL(nvtx_core, NVTX_PUSH_EX, int (*)(const nvtx_event *), NVTX_NOT_TRACKED, event);
}
static void *nvtx_domain(const char *name) {
    return NVTX_CALL(nvtx_core2, NVTX_DOMAIN_CREATE_A, void *(*)(const char *), NULL, name);
}
static void *nvtx_string(void *domain, const char *text) {
    return NVTX_CALL(nvtx_core2, NVTX_DOMAIN_STRING_A, void *(*)(void *, const char *), NULL, domain, text);
}
static void nvtx_domain_category(void *domain, uint32_t category, const char *name) {
    NVTX_CALL(nvtx_core2, NVTX_DOMAIN_CATEGORY_A, void (*)(void *, uint32_t, const char *), (void)0, domain, category,
              name);
}
static int nvtx_domain_push(void *domain, const nvtx_event *event) {
    return NVTX_CALL(nvtx_core2, NVTX_DOMAIN_PUSH_EX, int (*)(void *, const nvtx_event *), NVTX_NOT_TRACKED, domain,
                     event);
}
static int nvtx_domain_pop(void *domain) {
    return NVTX_CALL(nvtx_core2, NVTX_DOMAIN_POP, int (*)(void *), NVTX_NOT_TRACKED, domain);
}
static void nvtx_domain_mark(void *domain, const nvtx_event *event) {
    NVTX_CALL(nvtx_core2, NVTX_DOMAIN_MARK_EX, void (*)(void *, const nvtx_event *), (void)0, domain, event);
}

#endif
