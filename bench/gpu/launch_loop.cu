// Empty kernels back to back, from one or several threads: microseconds per launch.
//
//   launch_loop LAUNCHES [THREADS [ROUNDS [PAUSE_MS]]]
//
// Prints one line per round. With a pause it sleeps between rounds, so that something from outside (a window that
// opens or closes) can happen in between. LAUNCH_CPU=N keeps the launching thread on one CPU. With LAUNCH_TURNS=PATH each
// round waits for a line in the pipe PATH.order, and its line goes to PATH.answer.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void empty() {}

static void launch(int launches, cudaStream_t stream) {
    for (int i = 0; i < launches; i++) empty<<<1, 32, 0, stream>>>();
    cudaStreamSynchronize(stream);
}

int main(int count, char **words) {
    int launches = count > 1 ? atoi(words[1]) : 100000;
    int threads = count > 2 ? atoi(words[2]) : 1;
    int rounds = count > 3 ? atoi(words[3]) : 1;
    int pause_ms = count > 4 ? atoi(words[4]) : 0;
    std::vector<cudaStream_t> streams(threads);
    for (auto &stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    launch(1000, streams[0]);
    if (const char *cpu = getenv("LAUNCH_CPU")) {
        // After CUDA has started: threads that it or a profiler made run where they like.
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(atoi(cpu), &only);
        if (sched_setaffinity(0, sizeof only, &only) != 0) perror("LAUNCH_CPU");
    }
    FILE *order = nullptr, *answer = stdout;
    if (const char *path = getenv("LAUNCH_TURNS")) {
        order = fopen((std::string(path) + ".order").c_str(), "r");
        answer = fopen((std::string(path) + ".answer").c_str(), "w");
        if (!order || !answer) {
            perror(path);
            return 1;
        }
    }
    for (int round = 0; round < rounds; round++) {
        char line[16];
        if (order && !fgets(line, sizeof line, order)) break;
        auto start = std::chrono::steady_clock::now();
        if (threads == 1) {
            launch(launches, streams[0]);
        } else {
            std::vector<std::thread> workers;
            for (auto &stream : streams) workers.emplace_back([=] { launch(launches, stream); });
            for (auto &worker : workers) worker.join();
        }
        double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        fprintf(answer, "round %d us_per_launch %.4f\n", round, seconds / launches / threads * 1e6);
        fflush(answer);
        if (pause_ms) usleep(pause_ms * 1000);
    }
}
