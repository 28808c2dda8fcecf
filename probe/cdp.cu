#include <cuda_profiler_api.h>
#include <cstdio>
__global__ void child(float*o,int k){o[k]=k*3.f;}
__global__ void parent(float*o){ child<<<1,1>>>(o,threadIdx.x); }
int main(){float*o;cudaMalloc(&o,4096);cudaMemset(o,0,4096);parent<<<1,8>>>(o);cudaDeviceSynchronize();cudaProfilerStart();parent<<<1,8>>>(o);cudaDeviceSynchronize();cudaProfilerStop();float h[8];cudaMemcpy(h,o,32,cudaMemcpyDeviceToHost);printf("%g %g %s\n",h[1],h[7],cudaGetErrorString(cudaGetLastError()));}
