//! Modules, libraries and the functions in them.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::state::{self, check_initialised};
use crate::call::api;
use crate::code::Code;
use crate::cupti::callbacks::{self, ModuleData, resource};
use crate::cupti::subscriber::{self, Domain};
use crate::engine::context::Context;
use crate::engine::module::{Function, Module};
use crate::engine::registry::Registry;
use crate::engine::{context, cubin};
use crate::pointer::{In, Out};

pub(crate) static MODULES: Registry<Module> = Registry::new();
pub(crate) static FUNCTIONS: Registry<Function> = Registry::new();
/// What `cuLibraryGetKernel` hands out: a function under another handle.
static KERNELS: Registry<Kernel> = Registry::new();

struct Kernel {
    function: Arc<Function>,
}

/// The greatest dynamic shared memory: `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: u32 = 8;

api! { Driver:
    fn cuModuleLoadData = 19 (module: Out<usize>, image: In<c_char>) => load(module, image);
    fn cuModuleLoadDataEx = 20 (
        module: Out<usize>, image: In<c_char>, _numOptions: u32, _options: In<u32>, _optionValues: In<u64>,
    ) => load(module, image);
    fn cuModuleLoadFatBinary = 21 (module: Out<usize>, fatCubin: In<c_char>) => load(module, fatCubin);
    fn cuModuleUnload = 22 (hmod: usize) => unload(hmod);
    fn cuModuleGetFunction = 23 (hfunc: Out<usize>, hmod: usize, name: In<c_char>)
        => function_of(&MODULES.get(hmod)?, name).and_then(|function| hfunc.put(FUNCTIONS.add(function)));
    fn cuModuleGetGlobal_v2 = 241 (dptr: Out<u64>, bytes: Out<usize>, hmod: usize, name: In<c_char>)
        => variable_of(hmod, name, dptr, bytes);
    fn cuLibraryGetGlobal = 684 (dptr: Out<u64>, bytes: Out<usize>, library: usize, name: In<c_char>)
        => variable_of(library, name, dptr, bytes);
    fn cuModuleGetLoadingMode = 673 (mode: Out<u32>) => mode.put(1);
    fn cuModuleGetFunctionCount = 737 (count: Out<u32>, module: usize)
        => MODULES.get(module).and_then(|module| count.put(module.names().len() as u32));
    fn cuModuleEnumerateFunctions = 738 (functions: Out<usize>, numFunctions: u32, module: usize) => {
        let module = MODULES.get(module)?;
        let names = module.names();
        let found = names.iter().take(numFunctions as usize).map(|name| module.function(name));
        let found: Result<Vec<_>, Code> = found.collect();
        functions.put_all(&found?.into_iter().map(|function| FUNCTIONS.add(function)).collect::<Vec<_>>());
        Ok(())
    };
    fn cuLibraryLoadData = 678 (
        library: Out<usize>, code: In<c_char>,
        _jitOptions: In<u32>, _jitOptionsValues: In<u64>, _numJitOptions: u32,
        _libraryOptions: In<u32>, _libraryOptionValues: In<u64>, _numLibraryOptions: u32,
    ) => load(library, code);
    fn cuLibraryUnload = 680 (library: usize) => unload(library);
    fn cuLibraryGetKernel = 681 (pKernel: Out<usize>, library: usize, name: In<c_char>) => {
        let function = function_of(&MODULES.get(library)?, name)?;
        pKernel.put(kernel_handle(function))
    };
    fn cuLibraryGetModule = 682 (pMod: Out<usize>, library: usize)
        => MODULES.get(library).and_then(|_| pMod.put(library));
    fn cuKernelGetFunction = 683 (pFunc: Out<usize>, kernel: usize)
        => KERNELS.get(kernel).and_then(|kernel| pFunc.put(FUNCTIONS.add(kernel.function.clone())));
    fn cuKernelGetName = 719 (name: Out<*const c_char>, kernel: usize)
        => KERNELS.get(kernel).and_then(|kernel| name.put(kernel.function.name.as_ptr()));
    fn cuKernelGetParamInfo = 734 (kernel: usize, paramIndex: usize, paramOffset: Out<usize>, paramSize: Out<usize>)
        => parameter_info(&KERNELS.get(kernel)?.function, paramIndex, paramOffset, paramSize);
    fn cuKernelGetAttribute = 686 (pi: Out<i32>, attrib: u32, kernel: usize, _dev: i32)
        => attribute(&KERNELS.get(kernel)?.function, attrib).and_then(|value| pi.put(value));
    fn cuKernelSetAttribute = 687 (attrib: u32, val: i32, kernel: usize, _dev: i32)
        => set_attribute(&KERNELS.get(kernel)?.function, attrib, val);
    fn cuFuncGetName = 718 (name: Out<*const c_char>, hfunc: usize)
        => FUNCTIONS.get(hfunc).and_then(|function| name.put(function.name.as_ptr()));
    fn cuFuncGetParamInfo = 733 (func: usize, paramIndex: usize, paramOffset: Out<usize>, paramSize: Out<usize>)
        => parameter_info(&FUNCTIONS.get(func)?, paramIndex, paramOffset, paramSize);
    fn cuFuncGetAttribute = 85 (pi: Out<i32>, attrib: u32, hfunc: usize)
        => attribute(&FUNCTIONS.get(hfunc)?, attrib).and_then(|value| pi.put(value));
    fn cuFuncSetAttribute = 481 (hfunc: usize, attrib: u32, value: i32)
        => set_attribute(&FUNCTIONS.get(hfunc)?, attrib, value);
    fn cuFuncGetModule = 566 (hmod: Out<usize>, hfunc: usize)
        => FUNCTIONS.get(hfunc).and_then(|function| hmod.put(function.module));
    fn cuFuncLoad = 742 (function: usize) => FUNCTIONS.get(function).map(|_| ());
    fn cuFuncIsLoaded = 741 (state: Out<u32>, function: usize)
        => FUNCTIONS.get(function).and_then(|_| state.put(1));
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor = 374 (
        numBlocks: Out<i32>, func: usize, blockSize: i32, _dynamicSMemSize: usize,
    ) => function_by_handle(func).and_then(|_| numBlocks.put((2048 / blockSize.max(1)).clamp(1, 32)));
}

/// A kernel of a library has one handle, however often it is asked for.
fn kernel_handle(function: Arc<Function>) -> usize {
    match KERNELS.find(|kernel| Arc::ptr_eq(&kernel.function, &function)) {
        Some(kernel) => Registry::handle_of(&kernel),
        None => KERNELS.add(Arc::new(Kernel { function })),
    }
}

/// A launch takes a function, or a library's kernel in its place.
pub(crate) fn function_by_handle(handle: usize) -> Result<Arc<Function>, Code> {
    FUNCTIONS
        .get(handle)
        .or_else(|_| KERNELS.get(handle).map(|kernel| kernel.function.clone()))
}

fn load(handle: Out<usize>, image: In<c_char>) -> Result<(), Code> {
    check_initialised()?;
    let context = context::current()?;
    let module = Module::load(&text_of(image)?, context.device.ordinal)?;
    callbacks::about_module(resource::MODULE_LOADED, Some(&context), &data_of(&module));
    handle.put(MODULES.add(module))
}

/// The PTX of an image, which is text or a cubin of ours.
fn text_of(image: In<c_char>) -> Result<String, Code> {
    let bytes = In::<u8>::from_address(image.address());
    if bytes.list(4) != b"\x7fELF" {
        return image.string().ok_or(Code::INVALID_VALUE);
    }
    let length = cubin::length(&bytes.list(cubin::HEADER_BYTES)).ok_or(Code::INVALID_IMAGE)?;
    cubin::unwrap(&bytes.list(length)).ok_or(Code::INVALID_IMAGE)
}

fn unload(handle: usize) -> Result<(), Code> {
    check_initialised()?;
    let module = MODULES.get(handle)?;
    let context = context::current_or_none();
    callbacks::about_module(
        resource::MODULE_UNLOAD_STARTING,
        context.as_ref(),
        &data_of(&module),
    );
    for function in module.functions_in_use() {
        // Only those whose handle was asked for are known by one.
        let _ = FUNCTIONS.remove(Registry::handle_of(&function));
        if let Some(kernel) = KERNELS.find(|kernel| Arc::ptr_eq(&kernel.function, &function)) {
            KERNELS.remove(Registry::handle_of(&kernel))?;
        }
    }
    MODULES.remove(handle).map(|_| ())
}

/// Tells the subscriber that a kernel of the module is about to run. A GPU's driver holds a lock meanwhile: who calls it
/// from there may never come back.
pub(crate) fn announce_use(context: &Arc<Context>, function: &Function) {
    if !subscriber::is_wanted(Domain::Resource, resource::MODULE_PROFILED) {
        return;
    }
    if let Ok(module) = MODULES.get(function.module) {
        state::within_launch(|| {
            callbacks::about_module(resource::MODULE_PROFILED, Some(context), &data_of(&module));
        });
    }
}

fn data_of(module: &Module) -> ModuleData {
    ModuleData {
        module_id: module.id,
        cubin_size: module.cubin.len(),
        cubin: module.cubin.as_ptr(),
    }
}

fn function_of(module: &Arc<Module>, name: In<c_char>) -> Result<Arc<Function>, Code> {
    let name: CString = name.text().ok_or(Code::INVALID_VALUE)?;
    module.function(&name.to_string_lossy())
}

fn variable_of(module: usize, name: In<c_char>, address: Out<u64>, size: Out<usize>) -> Result<(), Code> {
    let module = MODULES.get(module)?;
    let name: CString = name.text().ok_or(Code::INVALID_VALUE)?;
    let variable = module.variable(&name.to_string_lossy())?;
    address.put_if_wanted(variable.address);
    size.put_if_wanted(variable.size);
    Ok(())
}

fn parameter_info(
    function: &Arc<Function>,
    index: usize,
    offset: Out<usize>,
    size: Out<usize>,
) -> Result<(), Code> {
    let parameter = function.parameters.get(index).ok_or(Code::INVALID_VALUE)?;
    offset.put(parameter.offset)?;
    size.put_if_wanted(parameter.size);
    Ok(())
}

/// `CUfunction_attribute` by number.
fn attribute(function: &Arc<Function>, number: u32) -> Result<i32, Code> {
    Ok(match number {
        0 => 1024,                            // threads per block
        1..=3 => 0,                           // static shared, constant, local bytes
        4 => i32::from(function.registers()), // registers
        5 | 6 => 90,                          // PTX and binary version
        MAX_DYNAMIC_SHARED => function.max_dynamic_shared_bytes.load(Ordering::Relaxed),
        _ => 0,
    })
}

fn set_attribute(function: &Arc<Function>, number: u32, value: i32) -> Result<(), Code> {
    if number == MAX_DYNAMIC_SHARED {
        if !(0..=232_448).contains(&value) {
            return Err(Code::INVALID_VALUE);
        }
        function.max_dynamic_shared_bytes.store(value, Ordering::Relaxed);
    }
    Ok(())
}
