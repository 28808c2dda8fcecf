// Launches kernels and leaves in one of several ways: `leaving WAY COUNT`. Says when it leaves, by the monotonic clock.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void empty() {}

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "return";
    long launches = count > 2 ? atol(arguments[2]) : 80000;
    if (strcmp(way, "nothing") == 0)
        return 0;
    for (long i = 0; i < launches; i++)
        empty<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    if (strcmp(way, "busy") == 0)
        spin<<<1, 1>>>(10LL << 30);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("launched %ld left %.6f\n", launches, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    fflush(stdout);
    if (strcmp(way, "_exit") == 0 || strcmp(way, "busy") == 0)
        _exit(0);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(way, "exec") == 0)
        execl(arguments[0], arguments[0], "nothing", (char *)nullptr);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "terminate") == 0)
        throw 1;
    if (strcmp(way, "fork") == 0) {
        // The child leaves at once, and the parent goes on.
        for (int i = 0; i < 20; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            waitpid(child, nullptr, 0);
        }
    }
    return 0;
}
