/* A program with a profiler of its own, step by step: `guest PLAN`. It is linked against libcupti, as a framework's
 * library is. Each letter of the plan is a step:
 *
 *   i  initialise CUDA, with a context and the kernels
 *   k  10 kernels, waited for
 *   a  1 kernel, not waited for
 *   w  wait for all that was asked for
 *   b  build a graph of 10 kernels, one behind the other
 *   y  copy it
 *   Y  destroy the copy
 *   e  make it ready, launch it, wait for it, and destroy what was made ready
 *   n  10 kernels within an NVTX range "step", waited for
 *   d  the same in a range "step" of the domain "guest"
 *   m  an NVTX mark
 *   r  an NVTX range "empty"
 *   p  cuProfilerStart
 *   q  cuProfilerStop
 *   l  look CUPTI's functions up by name, and use what was found from here on
 *   I  load the library that GUEST_LATE names, armed, as Python does in a process that has run for a while
 *   t  register a clock of its own
 *   o  open a session: buffers, kernels and calls of the driver
 *   c  close it: flush, and end the kinds
 *   E  have external correlations
 *   P  check that they are still enabled, as the fake CUPTI knows
 *   K  say which kinds are enabled, as the fake CUPTI knows, one bit for each
 *   j  close it as Kineto does, the first half: end the kinds
 *   J  the second half: flush if a buffer is lent, or else forget what came
 *   D  have devices, with those that exist already
 *   L  have launches timed when they are queued
 *   s  subscribe, with a callback for launches
 *   S  the same by the interface for several clients, where CUPTI has it
 *   u  unsubscribe
 *   f  cuptiFinalize
 *   g  say how far it is and wait for a line of input
 *   z  sleep 20 milliseconds
 *   v  say whether CUPTI has a subscriber, as the fake's own function answers: 0 none, 39 one
 *   !  kill itself
 *   #  have an exit handler say when the program has left
 *   x  become `launcher launch 3`, which lies beside it
 *   X  try to become programs that do not exist, by every function of the C library that does so
 *   V  the same in a child that shares our memory (vfork), which then leaves by _exit
 *   _  leave with 7, by _exit
 *   Q  the same by quick_exit
 *   A  abort
 *   C  close all descriptors from 3 on
 *   N  forbid itself descriptors (RLIMIT_NOFILE 0), sleep half a second, and say how much CPU time that took
 *   R  register the domain "guest" with NVTX
 *   T  a thread of its own with an NVTX mark and a kernel, until it ends
 *   F  fork: the child does the rest of the plan, and the parent ends as the child does
 *
 * With -DONLY_LOOKED_UP it is not linked against libcupti, and needs an l before it calls it.
 *
 * It ends with one line: what it launched, what its profiler was given, and how much of that was wrong.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "nvtx_client.h"

enum { KERNEL_KIND = 10, DEVICE_KIND = 8, DRIVER_KIND = 4, CORRELATION_KIND = 39, KERNELS = 10 };
enum { BUFFER_BYTES = 1 << 20, START_OFFSET = 16, QUEUED_OFFSET = 120 };
enum { DRIVER_DOMAIN = 1, LAUNCH_KERNEL = 307 };

typedef void (*Requested)(uint8_t **, size_t *, size_t *);
typedef void (*Completed)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef void (*Callback)(void *, uint32_t, uint32_t, const void *);

#define CUPTI_FUNCTIONS(X)                                             \
    X(cuptiActivityRegisterCallbacks, (Requested, Completed))          \
    X(cuptiActivityRegisterTimestampCallback, (uint64_t (*)(void)))    \
    X(cuptiActivityEnable, (uint32_t))                                 \
    X(cuptiActivityEnableAndDump, (uint32_t))                          \
    X(cuptiActivityDisable, (uint32_t))                                \
    X(cuptiActivityFlushAll, (uint32_t))                               \
    X(cuptiActivityEnableLatencyTimestamps, (uint8_t))                 \
    X(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))        \
    X(cuptiSubscribe, (void **, Callback, void *))                     \
    X(cuptiUnsubscribe, (void *))                                      \
    X(cuptiEnableCallback, (uint32_t, void *, uint32_t, uint32_t))     \
    X(cuptiFinalize, (void))

#define DECLARE_LINKED(name, arguments) extern int name arguments;
CUPTI_FUNCTIONS(DECLARE_LINKED)

struct functions {
#define MEMBER(name, arguments) int(*name) arguments;
    CUPTI_FUNCTIONS(MEMBER)
};

static struct functions linked = {
#ifndef ONLY_LOOKED_UP
#define LINKED(name, arguments) .name = name,
    CUPTI_FUNCTIONS(LINKED)
#endif
};

/* In memory of which the loader knows nothing. */
static struct functions looked_up;

static struct functions *cupti = &linked;

static long launched, kernels, devices, queued, calls, foreign, late, callbacks, failed;
static uint64_t opened;
static int has_clock;
static uint8_t *lent[64];
static void *subscriber;

/* A clock unlike any other: a day ahead of 1970. */
static uint64_t own_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static time_t first;
    if (!first)
        first = now.tv_sec;
    return 86400000000000ull + (uint64_t)(now.tv_sec - first) * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void look_up(void) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "failed dlopen %s\n", dlerror());
        exit(2);
    }
#define LOOK_UP(name, arguments) *(void **)&looked_up.name = dlsym(library, #name);
    CUPTI_FUNCTIONS(LOOK_UP)
    cupti = &looked_up;
}

static void load_late(void) {
    const char *path = getenv("GUEST_LATE");
    int (*initialise)(void) = NULL;
    setenv("TRACESMITH_ARMED", "1", 1);
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (library)
        *(void **)&initialise = dlsym(library, "InitializeInjection");
    if (!initialise || initialise() != 1) {
        fprintf(stderr, "failed to load late: %s\n", dlerror());
        exit(2);
    }
    unsetenv("TRACESMITH_ARMED");
}

static void request(uint8_t **buffer, size_t *size, size_t *records) {
    *size = BUFFER_BYTES;
    *records = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    for (int i = 0; i < 64; i++) {
        if (!lent[i]) {
            lent[i] = *buffer;
            return;
        }
    }
}

static int give_back(uint8_t *buffer) {
    for (int i = 0; i < 64; i++) {
        if (lent[i] == buffer) {
            lent[i] = NULL;
            return 1;
        }
    }
    return 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    void *record = NULL;
    (void)context, (void)stream, (void)size;
    if (!give_back(buffer)) {
        foreign++;
        return;
    }
    while (cupti->cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
        uint32_t kind = *(uint32_t *)record;
        uint64_t start, queue;
        memcpy(&start, (char *)record + START_OFFSET, sizeof start);
        calls += kind == DRIVER_KIND;
        devices += kind == DEVICE_KIND;
        if (kind != KERNEL_KIND)
            continue;
        memcpy(&queue, (char *)record + QUEUED_OFFSET, sizeof queue);
        kernels++;
        queued += queue != 0;
        /* A record of their clock lies within the session; 50 us are for comparing clocks. */
        late += has_clock && (start + 50000 < opened || start > own_clock() + 50000);
    }
    free(buffer);
}

static void called(void *user, uint32_t domain, uint32_t id, const void *data) {
    (void)data;
    callbacks += user == &callbacks && domain == DRIVER_DOMAIN && id == LAUNCH_KERNEL;
}

static void note(int result) { failed += result != 0; }

static void launch_some(void) {
    CUfunction noop = kernel("noop");
    for (int i = 0; i < KERNELS; i++)
        launch(noop, 1, 32, NULL, NULL);
    CHECK(cuCtxSynchronize());
    launched += KERNELS;
}

static CUstream graph_stream;
static CUgraph graph, copied;

static void build_graph(void) {
    CUfunction noop = kernel("noop");
    CHECK(cuStreamCreate(&graph_stream, 1));
    CHECK(cuStreamBeginCapture_v2(graph_stream, 0));
    for (int i = 0; i < KERNELS; i++)
        launch(noop, 1, 32, graph_stream, NULL);
    CHECK(cuStreamEndCapture(graph_stream, &graph));
}

static void run_graph(void) {
    CUgraphExec executable;
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, graph_stream));
    CHECK(cuStreamSynchronize(graph_stream));
    CHECK(cuGraphExecDestroy(executable));
    launched += KERNELS;
}

static void say_left(int code, void *unused) {
    (void)unused;
    printf("left with %d\n", code);
}

/* The fake's libcuda has CUPTI's functions too, where no profiler stands between. */
static void say_subscribed(void) {
    int (*subscribe)(void **, Callback, void *) = NULL, (*unsubscribe)(void *) = NULL;
    void *mine;
    *(void **)&subscribe = dlsym(driver_library, "cuptiSubscribe");
    *(void **)&unsubscribe = dlsym(driver_library, "cuptiUnsubscribe");
    int result = subscribe && unsubscribe ? subscribe(&mine, called, NULL) : -1;
    if (result == 0)
        unsubscribe(mine);
    printf("subscribed %d\n", result);
    fflush(stdout);
}

static void become_launcher(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    if (length > 0) {
        path[length] = 0;
        strcpy(strrchr(path, '/') + 1, "launcher");
        execl(path, "launcher", "launch", "3", (char *)NULL);
    }
    fprintf(stderr, "failed exec\n");
    exit(2);
}

extern char **environ;

static void fail_to_become(void) {
    char *const words[] = {"nobody", NULL};
    int before = STDIN_FILENO;
    execve("/nobody", words, environ);
    execv("/nobody", words);
    execvp("no-such-program", words);
    execvpe("no-such-program", words, environ);
    execl("/nobody", "nobody", "a", "b", "c", "d", "e", "f", "g", (char *)NULL);
    execlp("no-such-program", "nobody", "a", "b", "c", "d", "e", "f", "g", (char *)NULL);
    execle("/nobody", "nobody", "a", "b", "c", "d", "e", "f", "g", (char *)NULL, environ);
    fexecve(before, words, environ);
}

static void *domain;

static void *own_thread(void *unused) {
    (void)unused;
    CHECK(cuCtxSetCurrent(context));
    nvtx_mark("a thread");
    launch(kernel("noop"), 1, 32, NULL, NULL);
    CHECK(cuCtxSynchronize());
    return NULL;
}

static void run_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, own_thread, NULL);
    pthread_join(thread, NULL);
    launched++;
}

static void sleep_without_descriptors(void) {
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0)
        abort();
    const clock_t before = clock();
    const struct timespec time = {0, 500 * 1000 * 1000};
    nanosleep(&time, NULL);
    printf("%ld ms of CPU time\n", (long)((clock() - before) * 1000 / CLOCKS_PER_SEC));
}

static void fork_child(void) {
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        return;
    waitpid(child, &status, 0);
    printf("child %d\n", (int)child);
    exit(status != 0);
}

static void push_in_domain(const char *name, const char *text) {
    nvtx_event event;
    if (!domain)
        domain = nvtx_domain(name);
    memset(&event, 0, sizeof event);
    event.version = 3;
    event.size = sizeof event;
    event.message_type = 1;
    event.message.ascii = text;
    nvtx_domain_push(domain, &event);
}

/* Looked up: CUPTI has it from CUDA 13.0 on. */
static void subscribe_v2(void) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    int (*subscribe)(void **, Callback, void *, void *) = NULL;
    if (library)
        *(void **)&subscribe = dlsym(library, "cuptiSubscribe_v2");
    note(subscribe ? subscribe(&subscriber, called, &callbacks, NULL) : -1);
    note(cupti->cuptiEnableCallback(1, subscriber, DRIVER_DOMAIN, LAUNCH_KERNEL));
}

static uint64_t enabled_kinds(void) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    uint64_t (*enabled)(void) = NULL;
    if (library)
        *(void **)&enabled = dlsym(library, "fakeCuptiKinds");
    if (!enabled) {
        fprintf(stderr, "failed fakeCuptiKinds\n");
        exit(2);
    }
    return enabled();
}

static void check_correlations(void) { note(enabled_kinds() & 1ull << CORRELATION_KIND ? 0 : -1); }

static void say_kinds(void) {
    printf("kinds %llu\n", (unsigned long long)enabled_kinds());
    fflush(stdout);
}

/* Kineto asks for what it has only where a buffer of its own is missing. */
static void fetch(void) {
    int is_missing = 0;
    for (int i = 0; i < 64; i++)
        is_missing |= lent[i] != NULL;
    if (is_missing)
        note(cupti->cuptiActivityFlushAll(1));
    else
        kernels = calls = 0;
}

static void take_step(char step) {
    char line[64];
    switch (step) {
    case 'i':
        start_device();
        break;
    case 'k':
        launch_some();
        break;
    case 'a':
        launch(kernel("noop"), 1, 32, NULL, NULL);
        launched++;
        break;
    case 'w':
        CHECK(cuCtxSynchronize());
        break;
    case 'b':
        build_graph();
        break;
    case 'y':
        CHECK(cuGraphClone(&copied, graph));
        break;
    case 'Y':
        CHECK(cuGraphDestroy(copied));
        break;
    case 'e':
        run_graph();
        break;
    case 'n':
        nvtx_push("step");
        launch_some();
        nvtx_pop();
        break;
    case 'd':
        push_in_domain("guest", "step");
        launch_some();
        nvtx_domain_pop(domain);
        break;
    case 'm':
        nvtx_mark("a mark");
        break;
    case 'r':
        nvtx_push("empty");
        nvtx_pop();
        break;
    case 'p':
        CHECK(cuProfilerStart());
        break;
    case 'q':
        CHECK(cuProfilerStop());
        break;
    case 'l':
        look_up();
        break;
    case 'I':
        load_late();
        break;
    case 't':
        has_clock = 1;
        note(cupti->cuptiActivityRegisterTimestampCallback(own_clock));
        break;
    case 'o':
        opened = own_clock();
        note(cupti->cuptiActivityRegisterCallbacks(request, complete));
        note(cupti->cuptiActivityEnable(KERNEL_KIND));
        note(cupti->cuptiActivityEnable(DRIVER_KIND));
        break;
    case 'c':
        note(cupti->cuptiActivityFlushAll(1));
        note(cupti->cuptiActivityDisable(KERNEL_KIND));
        note(cupti->cuptiActivityDisable(DRIVER_KIND));
        break;
    case 'E':
        note(cupti->cuptiActivityEnable(CORRELATION_KIND));
        break;
    case 'P':
        check_correlations();
        break;
    case 'K':
        say_kinds();
        break;
    case 'j':
        note(cupti->cuptiActivityDisable(KERNEL_KIND));
        note(cupti->cuptiActivityDisable(DRIVER_KIND));
        break;
    case 'J':
        fetch();
        break;
    case 'D':
        note(cupti->cuptiActivityEnableAndDump(DEVICE_KIND));
        break;
    case 'L':
        note(cupti->cuptiActivityEnableLatencyTimestamps(1));
        break;
    case 's':
        note(cupti->cuptiSubscribe(&subscriber, called, &callbacks));
        note(cupti->cuptiEnableCallback(1, subscriber, DRIVER_DOMAIN, LAUNCH_KERNEL));
        break;
    case 'S':
        subscribe_v2();
        break;
    case 'u':
        note(cupti->cuptiUnsubscribe(subscriber));
        break;
    case 'f':
        note(cupti->cuptiFinalize());
        break;
    case 'g':
        printf("at %ld\n", launched);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            exit(3);
        break;
    case 'z':
        usleep(20000);
        break;
    case 'v':
        say_subscribed();
        break;
    case '!':
        raise(SIGKILL);
        break;
    case '#':
        on_exit(say_left, NULL);
        break;
    case 'x':
        become_launcher();
        break;
    case 'X':
        fail_to_become();
        break;
    case 'V':
        if (vfork() == 0) {
            execl("/nobody", "nobody", (char *)NULL);
            _exit(127);
        }
        wait(NULL);
        break;
    case '_':
        printf("leaving after %ld\n", launched);
        fflush(stdout);
        _exit(7);
    case 'Q':
        printf("leaving after %ld\n", launched);
        fflush(stdout);
        quick_exit(7);
    case 'A':
        printf("aborting after %ld\n", launched);
        fflush(stdout);
        abort();
    case 'C':
        for (int descriptor = 3; descriptor < 4096; descriptor++)
            close(descriptor);
        break;
    case 'N':
        sleep_without_descriptors();
        break;
    case 'R':
        domain = nvtx_domain("guest");
        break;
    case 'T':
        run_thread();
        break;
    case 'F':
        fork_child();
        break;
    default:
        fprintf(stderr, "failed plan %c\n", step);
        exit(64);
    }
}

int main(int count, char **arguments) {
    for (const char *step = count > 1 ? arguments[1] : "ik"; *step; step++)
        take_step(*step);
    printf("launched %ld kernels %ld devices %ld queued %ld calls %ld callbacks %ld foreign %ld late %ld failed %ld\n", launched,
           kernels, devices, queued, calls, callbacks, foreign, late, failed);
    return 0;
}
