#include <cuda.h>
#include <cupti.h>
#include <cuda_runtime.h>
#include <cstdio>
__device__ int counter=7;
__global__ void bump(int*o){ if(threadIdx.x==0){ o[0]=counter; counter+=10; } }
static void CUPTIAPI cb(void*,CUpti_CallbackDomain d,CUpti_CallbackId id,const void*data){
  if(d==CUPTI_CB_DOMAIN_DRIVER_API){auto*c=(const CUpti_CallbackData*)data; printf("   driver %s %s\n",c->functionName,c->callbackSite==CUPTI_API_ENTER?"enter":"exit");}
  else {auto*r=(const CUpti_ResourceData*)data; auto*m=(const CUpti_ModuleResourceData*)r->resourceDescriptor; printf("   resource %u module %u size %zu\n",id,m?m->moduleId:0,m?m->cubinSize:0);} }
int main(int argc,char**argv){ int*o; cudaMalloc(&o,4096); cudaStream_t s; cudaStreamCreate(&s); bump<<<1,32,0,s>>>(o); cudaDeviceSynchronize();
  CUpti_SubscriberHandle h; cuptiSubscribe(&h,(CUpti_CallbackFunc)cb,0); cuptiEnableCallback(1,h,CUPTI_CB_DOMAIN_RESOURCE,CUPTI_CBID_RESOURCE_MODULE_PROFILED); cuptiEnableDomain(1,h,CUPTI_CB_DOMAIN_DRIVER_API);
  printf("capture\n"); cudaStreamBeginCapture(s,cudaStreamCaptureModeGlobal); bump<<<1,32,0,s>>>(o); bump<<<1,32,0,s>>>(o); cudaGraph_t g; cudaStreamEndCapture(s,&g); cudaGraphExec_t e; cudaGraphInstantiate(&e,g,0); printf("launch\n"); cudaGraphLaunch(e,s); cudaStreamSynchronize(s); printf("again\n"); cudaGraphLaunch(e,s); cudaStreamSynchronize(s); }
