// A window with a kernel that launches kernels.
#include <cstdio>
#include <cuda_profiler_api.h>

__global__ void child(float *out, int place) { out[place] = out[place] * 2 + place; }

__global__ void parent(float *out) { child<<<1, 1>>>(out, threadIdx.x); }

int main() {
    float *out, numbers[8];
    cudaMalloc(&out, 4096);
    cudaMemset(out, 0, 4096);
    parent<<<1, 8>>>(out);
    cudaDeviceSynchronize();
    cudaProfilerStart();
    cudaMemset(out, 0, 16);
    parent<<<1, 8>>>(out);
    parent<<<1, 8>>>(out);
    cudaDeviceSynchronize();
    cudaProfilerStop();
    cudaMemcpy(numbers, out, sizeof numbers, cudaMemcpyDeviceToHost);
    printf("device launch %g %g %s\n", numbers[1], numbers[7], cudaGetErrorString(cudaGetLastError()));
}
