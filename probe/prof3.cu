// hold: sync in enter, wait value in stream, read at exit
#include <cuda.h>
#include <cupti.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <unistd.h>
__device__ int counter=7; 
__global__ void bump(int*o){ if(threadIdx.x==0){ o[0]=counter; counter+=10; } }
static int depth=0; static CUmodule mod; static unsigned*flag; static CUdeviceptr dflag; static CUstream own; static int*pin;
static void CUPTIAPI cb(void*,CUpti_CallbackDomain d,CUpti_CallbackId id,const void*data){
  if(depth) return; depth=1;
  auto*c=(const CUpti_CallbackData*)data; auto*p=(const cuLaunchKernel_params*)c->functionParams; CUstream s=p->hStream;
  alarm(10);
  if(c->callbackSite==CUPTI_API_ENTER){ CUresult a=cuCtxSynchronize(); *(volatile unsigned*)flag=0; CUresult b=cuStreamWaitValue32(s,dflag,1,CU_STREAM_WAIT_VALUE_GEQ); printf("  enter sync %d hold %d\n",a,b);} 
  else { CUdeviceptr q=0;size_t n; CUresult a=cuModuleGetGlobal(&q,&n,mod,"counter"); CUresult b=cuMemcpyDtoHAsync(pin,q,4,own); CUresult e=cuStreamSynchronize(own); printf("  exit global %d copy %d sync %d value %d\n",a,b,e,*pin); *(volatile unsigned*)flag=1; }
  alarm(0); fflush(stdout); depth=0; }
int main(int argc,char**argv){
  setvbuf(stdout,0,_IOLBF,0); int*o; cudaMalloc(&o,4096); cudaFunction_t f; cudaGetFuncBySymbol(&f,(void*)bump); cuFuncGetModule(&mod,(CUfunction)f);
  cudaHostAlloc((void**)&flag,4096,cudaHostAllocMapped); cuMemHostGetDevicePointer(&dflag,flag,0); cudaMallocHost((void**)&pin,64); cuStreamCreate(&own,CU_STREAM_NON_BLOCKING);
  cudaStream_t st=0; if(argc>1) cudaStreamCreate(&st);
  CUpti_SubscriberHandle s; cuptiSubscribe(&s,(CUpti_CallbackFunc)cb,0); cuptiEnableCallback(1,s,CUPTI_CB_DOMAIN_DRIVER_API,CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  for(int i=0;i<3;i++){ bump<<<1,32,0,st>>>(o); cudaDeviceSynchronize(); int h; cudaMemcpy(&h,o,4,cudaMemcpyDeviceToHost); printf("saw %d\n",h);} }
