// A kernel that takes long in one stream, empty ones beside it in another.
//
//   beside MILLISECONDS KERNELS [forever]
//
// Ends when the empty ones are done, by _exit, as if it died while the long one runs; or begins again.
#include "check.h"

#include <string>
#include <unistd.h>

__global__ void spin(long long nanoseconds) {
    long long begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begun < nanoseconds);
}

__global__ void empty() {}

int main(int count, char **words) {
    long long milliseconds = count > 1 ? atoll(words[1]) : 1000;
    int kernels = count > 2 ? atoi(words[2]) : 20000;
    bool is_endless = count > 3 && std::string(words[3]) == "forever";
    cudaStream_t streams[2];
    for (auto &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    do {
        spin<<<1, 1, 0, streams[0]>>>(milliseconds * 1000000);
        for (int i = 0; i < kernels; i++) empty<<<1, 1, 0, streams[1]>>>();
        CHECK(cudaStreamSynchronize(streams[1]));
        printf("launched %d, the other %s\n", kernels, cudaStreamQuery(streams[0]) == cudaErrorNotReady ? "runs" : "has ended");
        fflush(stdout);
        if (is_endless) CHECK(cudaDeviceSynchronize());
    } while (is_endless);
    _exit(0);
}
