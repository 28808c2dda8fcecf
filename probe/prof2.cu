#include <cuda.h>
#include <cupti.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
#include <unistd.h>
__device__ int counter=7; __constant__ int table[4]={1,2,3,4};
__global__ void bump(int*o){ if(threadIdx.x==0){ o[0]=counter+table[1]; counter+=10; } }
static int depth=0; static CUmodule mod; static bool readit;
static void CUPTIAPI cb(void*,CUpti_CallbackDomain d,CUpti_CallbackId id,const void*data){
  if(depth) return; depth=1;
  if(d==CUPTI_CB_DOMAIN_DRIVER_API){auto*c=(const CUpti_CallbackData*)data; printf("   driver %s %s\n",c->functionName,c->callbackSite==CUPTI_API_ENTER?"enter":"exit");}
  else {auto*r=(const CUpti_ResourceData*)data; auto*m=(const CUpti_ModuleResourceData*)r->resourceDescriptor; printf("   resource %u module %u size %zu\n",id,m?m->moduleId:0,m?m->cubinSize:0); fflush(stdout);
    if(id==CUPTI_CBID_RESOURCE_MODULE_PROFILED&&readit){ alarm(10); CUresult a=cuCtxSynchronize(); CUdeviceptr p=0;size_t n=0; CUresult b=cuModuleGetGlobal(&p,&n,mod,"counter"); int v=-1; CUresult c=cuMemcpyDtoH(&v,p,4); printf("   in callback: sync %d global %d (%zu) read %d value %d\n",a,b,n,c,v); alarm(0);} }
  fflush(stdout); depth=0; }
int main(int argc,char**argv){
  setvbuf(stdout,0,_IOLBF,0); int*o; cudaMalloc(&o,4096); bool early=argc>1; 
  cudaFunction_t f; cudaGetFuncBySymbol(&f,(void*)bump); 
  if(early) {bump<<<1,32>>>(o); cudaDeviceSynchronize();}
  cuFuncGetModule(&mod,(CUfunction)f); printf("module %p\n",(void*)mod);
  CUpti_SubscriberHandle s; printf("subscribe %d\n",cuptiSubscribe(&s,(CUpti_CallbackFunc)cb,0));
  cuptiEnableCallback(1,s,CUPTI_CB_DOMAIN_RESOURCE,CUPTI_CBID_RESOURCE_MODULE_PROFILED); cuptiEnableCallback(1,s,CUPTI_CB_DOMAIN_DRIVER_API,CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel); cuptiEnableCallback(1,s,CUPTI_CB_DOMAIN_DRIVER_API,CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
  int v; printf("attr\n"); cuFuncGetAttribute(&v,CU_FUNC_ATTRIBUTE_NUM_REGS,(CUfunction)f); int nb; cuOccupancyMaxActiveBlocksPerMultiprocessor(&nb,(CUfunction)f,32,0);
  
  readit=true; for(int i=0;i<3;i++){printf("launch %d\n",i); bump<<<1,32>>>(o); cudaDeviceSynchronize(); int h; cudaMemcpy(&h,o,4,cudaMemcpyDeviceToHost); printf("saw %d\n",h);} }
