#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#define D(x) do{CUresult r_=(x); if(r_){const char*s;cuGetErrorName(r_,&s);printf("  %s -> %s\n",#x,s);} }while(0)
__global__ void texk(cudaTextureObject_t t, float*out,int n){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n) out[i]=tex1Dfetch<float>(t,i);}
__global__ void tex2(cudaTextureObject_t t, float*out,int w){ out[threadIdx.x+blockIdx.x*w]=tex2D<float>(t,threadIdx.x+0.5f,blockIdx.x+0.5f);}
__global__ void surfk(cudaSurfaceObject_t s,int w){ surf2Dwrite<float>(threadIdx.x*2.f,s,threadIdx.x*4,blockIdx.x);}
__global__ void plain(float*o){o[threadIdx.x]=1;}
__global__ void held(cudaTextureObject_t*t,float*o){o[0]=tex1Dfetch<float>(*t,0);}
__global__ void child(float*o){o[0]=5;}
static CUtexObject lin(CUdeviceptr p,size_t n,int mode){
  CUDA_RESOURCE_DESC r={}; r.resType=CU_RESOURCE_TYPE_LINEAR; r.res.linear.devPtr=p; r.res.linear.format=CU_AD_FORMAT_FLOAT; r.res.linear.numChannels=1; r.res.linear.sizeInBytes=n;
  CUDA_TEXTURE_DESC t={}; t.filterMode=mode?CU_TR_FILTER_MODE_LINEAR:CU_TR_FILTER_MODE_POINT; CUtexObject o=0; D(cuTexObjectCreate(&o,&r,&t,nullptr)); return o;}
static CUtexObject arr(CUarray a,int mode,int addr){
  CUDA_RESOURCE_DESC r={}; r.resType=CU_RESOURCE_TYPE_ARRAY; r.res.array.hArray=a;
  CUDA_TEXTURE_DESC t={}; t.filterMode=mode?CU_TR_FILTER_MODE_LINEAR:CU_TR_FILTER_MODE_POINT; t.addressMode[0]=t.addressMode[1]=t.addressMode[2]=(CUaddress_mode)addr; CUtexObject o=0; D(cuTexObjectCreate(&o,&r,&t,nullptr)); return o;}
static CUsurfObject sur(CUarray a){CUDA_RESOURCE_DESC r={}; r.resType=CU_RESOURCE_TYPE_ARRAY; r.res.array.hArray=a; CUsurfObject o=0; D(cuSurfObjectCreate(&o,&r)); return o;}
static CUarray mk(size_t w,size_t h,size_t d,unsigned f){CUDA_ARRAY3D_DESCRIPTOR e={}; e.Width=w;e.Height=h;e.Depth=d;e.Format=CU_AD_FORMAT_FLOAT;e.NumChannels=1;e.Flags=f;CUarray a=0;D(cuArray3DCreate(&a,&e));return a;}
int main(int argc,char**argv){
  cudaFree(0); float*p; cudaMalloc(&p,1<<20); CUdeviceptr d=(CUdeviceptr)p;
  CUtexObject o[20];
  for(int i=0;i<5;i++){o[i]=lin(d+i*4096,4096,0); printf("linear %d: %llx\n",i,o[i]);}
  o[5]=lin(d,4096,0); printf("linear same range again: %llx\n",o[5]);
  cuTexObjectDestroy(o[2]); cuTexObjectDestroy(o[1]); o[6]=lin(d,8192,0); printf("after destroying 2 then 1: %llx\n",o[6]); o[7]=lin(d,8192,0); printf("next: %llx\n",o[7]); o[8]=lin(d,8192,0); printf("next: %llx\n",o[8]);
  CUarray a=mk(64,32,0,CUDA_ARRAY3D_SURFACE_LDST), b=mk(64,32,4,0), c=mk(64,0,0,0);
  printf("arrays %p %p %p\n",(void*)a,(void*)b,(void*)c);
  for(int i=0;i<3;i++){CUtexObject t=arr(a,i&1,i); printf("array texture mode %d addr %d: %llx\n",i&1,i,t);} 
  CUtexObject t3=arr(b,0,0); printf("3d: %llx\n",t3);
  for(int i=0;i<3;i++){CUsurfObject s=sur(a); printf("surface: %llx\n",s);} 
  CUtexObject t4=arr(a,0,0); printf("texture after surfaces: %llx\n",t4);
  {CUDA_RESOURCE_DESC r; memset(&r,0xee,sizeof r); D(cuTexObjectGetResourceDesc(&r,o[3])); printf("desc type %d ptr %llx (want %llx) n %zu fmt %d ch %d flags %x\n",r.resType,r.res.linear.devPtr,d+3*4096,r.res.linear.sizeInBytes,r.res.linear.format,r.res.linear.numChannels,r.flags);
   CUDA_TEXTURE_DESC t; D(cuTexObjectGetTextureDesc(&t,o[3])); printf("tdesc addr %d filter %d flags %x\n",t.addressMode[0],t.filterMode,t.flags);
   CUDA_RESOURCE_VIEW_DESC v; CUresult rr=cuTexObjectGetResourceViewDesc(&v,o[3]); printf("view %d\n",rr);
   CUDA_RESOURCE_DESC q; D(cuTexObjectGetResourceDesc(&q,t4)); printf("array handle %p want %p\n",(void*)q.res.array.hArray,(void*)a);
   CUDA_RESOURCE_DESC e; printf("garbage handle 0x123456: %d; 0: %d; destroyed: %d\n",cuTexObjectGetResourceDesc(&e,0x123456),cuTexObjectGetResourceDesc(&e,0),cuTexObjectGetResourceDesc(&e,o[2]));}
  {CUDA_ARRAY3D_DESCRIPTOR e; D(cuArray3DGetDescriptor(&e,b)); printf("b: %zu %zu %zu fmt %d ch %d flags %x\n",e.Width,e.Height,e.Depth,e.Format,e.NumChannels,e.Flags);
   std::vector<float> h(64*32); for(size_t i=0;i<h.size();i++)h[i]=i; CUDA_MEMCPY3D m={}; m.srcMemoryType=CU_MEMORYTYPE_HOST; m.srcHost=h.data(); m.srcPitch=256; m.srcHeight=32; m.dstMemoryType=CU_MEMORYTYPE_ARRAY; m.dstArray=a; m.WidthInBytes=256;m.Height=32;m.Depth=1; D(cuMemcpy3D(&m));
   std::vector<float> g(64*32); CUDA_MEMCPY3D k={}; k.dstMemoryType=CU_MEMORYTYPE_HOST;k.dstHost=g.data();k.dstPitch=256;k.dstHeight=32;k.srcMemoryType=CU_MEMORYTYPE_ARRAY;k.srcArray=a;k.WidthInBytes=256;k.Height=32;k.Depth=1; D(cuMemcpy3D(&k)); printf("array round trip %s\n",g==h?"same":"DIFFERS");
   CUarray l=mk(64,32,6,CUDA_ARRAY3D_LAYERED); printf("layered %p\n",(void*)l); std::vector<float> y(64*32*6,3.f); CUDA_MEMCPY3D z={}; z.srcMemoryType=CU_MEMORYTYPE_HOST;z.srcHost=y.data();z.srcPitch=256;z.srcHeight=32;z.dstMemoryType=CU_MEMORYTYPE_ARRAY;z.dstArray=l;z.WidthInBytes=256;z.Height=32;z.Depth=6;D(cuMemcpy3D(&z));
   CUarray one=mk(64,0,0,0); CUDA_MEMCPY3D w=m; w.dstArray=one; w.Height=1; D(cuMemcpy3D(&w));}
  texk<<<1,32>>>(o[3],p+100000,32); tex2<<<32,64>>>(t4,p+100000,64); cudaDeviceSynchronize(); printf("run %s\n",cudaGetErrorString(cudaGetLastError()));
  // maps
  void*h,*mg,*as; cudaMallocHost(&h,1<<20); cudaMallocManaged(&mg,1<<20); cudaStream_t s; cudaStreamCreate(&s); cudaMallocAsync(&as,1<<20,s); cudaStreamSynchronize(s); void*big; cudaMalloc(&big,1ull<<30);
  CUdeviceptr va; CUmemGenericAllocationHandle gh; CUmemAllocationProp pr={}; pr.type=CU_MEM_ALLOCATION_TYPE_PINNED; pr.location.type=CU_MEM_LOCATION_TYPE_DEVICE; D(cuMemAddressReserve(&va,2<<20,0,0,0)); D(cuMemCreate(&gh,2<<20,&pr,0)); D(cuMemMap(va,2<<20,0,gh,0)); CUmemAccessDesc ad={}; ad.location=pr.location; ad.flags=CU_MEM_ACCESS_FLAGS_PROT_READWRITE; D(cuMemSetAccess(va,2<<20,&ad,1));
  struct {const char*n;unsigned long v;} q[]={{"malloc 1M",(unsigned long)p},{"malloc 1G",(unsigned long)big},{"pinned",(unsigned long)h},{"managed",(unsigned long)mg},{"async",(unsigned long)as},{"vmm",(unsigned long)va}};
  FILE*f=fopen("/proc/self/maps","r"); char line[512]; while(fgets(line,512,f)){unsigned long x,y; sscanf(line,"%lx-%lx",&x,&y); for(auto&e:q) if(e.v>=x&&e.v<y) printf("%-10s %lx in %s",e.n,e.v,line); if((y-x)>=(2<<20)&&(strstr(line,"---p")||strstr(line,"nvidia"))) printf("   region %s",line);} fclose(f);
  for(auto&e:q){CUdeviceptr b;size_t n;CUresult r=cuMemGetAddressRange(&b,&n,e.v+1000);printf("%s range %llx %zu (%d)\n",e.n,b,n,r);}
}
