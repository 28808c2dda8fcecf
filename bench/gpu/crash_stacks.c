/* Preloaded into a program: the native frames of a thread that crashes go to the file that CRASH_STACKS names, and so
 * do those of a thread that is sent SIGTRAP, which goes on then. */
#define _GNU_SOURCE 1
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES = 64 };

static int file = -1;

static void tell(int number) {
    void *frames[FRAMES];
    char name[17] = "", line[96];
    int count = backtrace(frames, FRAMES);
    prctl(PR_GET_NAME, name);
    int length = snprintf(line, sizeof line, "signal %d in thread %ld %s\n", number, syscall(SYS_gettid), name);
    if (write(file, line, (size_t)length) == length)
        backtrace_symbols_fd(frames, count, file);
    if (number != SIGTRAP) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

__attribute__((constructor)) static void watch(void) {
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP};
    const char *path = getenv("CRASH_STACKS");
    if (!path || (file = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)) < 0)
        return;
    /* The first call loads a library, which a handler must not. */
    void *frame;
    backtrace(&frame, 1);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tell;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        sigaction(SIGNALS[i], &action, NULL);
}
