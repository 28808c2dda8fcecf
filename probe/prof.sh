mkdir -p /tmp/p
cd probe; F="-lcuda -lcupti -I/usr/local/cuda/extras/CUPTI/include -L/usr/local/cuda/extras/CUPTI/lib64 -Xlinker -rpath=/usr/local/cuda/extras/CUPTI/lib64"
for n in prof2 prof3; do nvcc -arch=sm_90 -o /tmp/p/$n $n.cu $F 2>&1 | grep error; done
echo == prof2; timeout 30 /tmp/p/prof2; echo rc $?; echo == late; timeout 30 /tmp/p/prof2 late; echo rc $?
echo == hold; timeout 30 /tmp/p/prof3; echo rc $?; timeout 30 /tmp/p/prof3 s; echo rc $?
sed -i 's/CHECK(cudaCreateTextureObject(&texture, &of, &how, view));/{cudaError_t e=cudaCreateTextureObject(\&texture, \&of, \&how, view); printf("type %d filter %d norm %d view %p: %s\\n",of.resType,filter,normalized,view,cudaGetErrorString(e)); if(e) {cudaGetLastError(); texture=0;}}/' ../bench/gpu/replay/textures.cu; nvcc -arch=sm_90 -o /tmp/p/tx ../bench/gpu/replay/textures.cu && /tmp/p/tx | head -20
which gdb cuda-gdb
cd ..; T=target/release/tracesmith; cc -O2 -o /tmp/p/windows crates/fake-cuda/targets/windows.c -ldl
eval $($T env | grep -E "^export" )
/tmp/p/windows counting > /dev/null & pid=$!; sleep 2
$T record --pid $pid -d 0.2 --record --force -o /tmp/p/late.sbt > /tmp/p/rec.txt 2>&1 & sleep 3
unset LD_PRELOAD CUDA_INJECTION64_PATH TRACESMITH_ARMED
timeout 25 cuda-gdb -p $pid -batch -ex "thread apply all bt 24" 2>&1 | grep -E "^#|^Thread" | cut -c1-160 | head -90; kill -9 $pid; sleep 1; tail -3 /tmp/p/rec.txt
