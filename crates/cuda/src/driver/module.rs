//! Code for the device, and starting it.

use std::ffi::{CStr, CString, c_void};
use std::rc::Rc;

use super::functions::Handle;
use super::{Context, Parameter, Stream, missing};
use crate::Error;
use crate::cupti::parameters;

/// `CUDA_ERROR_INVALID_VALUE`: there are not so many parameters.
const BEHIND_THE_LAST: u32 = 1;

/// Code that was loaded into a context.
pub struct Module {
    loaded: Rc<Loaded>,
}

struct Loaded {
    context: Context,
    handle: Handle,
}

/// A kernel of a module, which it keeps loaded.
pub struct Function {
    module: Rc<Loaded>,
    handle: Handle,
}

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of the grid: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block: [u32; 3],
    /// Bytes of shared memory beyond those in the code.
    pub shared_bytes: u32,
}

/// A value handed to a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An address, or another number of eight bytes.
    U64(u64),
    /// A number.
    U32(u32),
    /// A number.
    F32(f32),
}

impl Argument {
    /// The bytes that the driver reads, the first ones first on every machine that CUDA runs on.
    fn bits(self) -> u64 {
        match self {
            Self::U64(number) => number,
            Self::U32(number) => u64::from(number),
            Self::F32(number) => u64::from(number.to_bits()),
        }
    }
}

impl Launch {
    /// At least `threads` threads, in a row of blocks.
    pub fn line(threads: u32, block: u32) -> Self {
        Self {
            grid: [threads.div_ceil(block).max(1), 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
        }
    }
}

impl Module {
    pub(super) fn from_ptx(context: &Context, ptx: &str) -> Result<Self, Error> {
        let driver = context.enter()?;
        // The driver reads up to a zero; text after one would be passed over.
        let text = CString::new(ptx).unwrap_or_else(|error| {
            let end = error.nul_position();
            CString::new(&ptx.as_bytes()[..end]).expect("cut at the first zero")
        });
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer; the text ends with a zero and is not kept.
        let status = unsafe { (driver.functions().cuModuleLoadData)(&raw mut handle, text.as_ptr().cast()) };
        driver.check("cuModuleLoadData", status)?;
        let context = context.clone();
        let loaded = Rc::new(Loaded { context, handle });
        Ok(Self { loaded })
    }

    /// Loads code as the driver had it: a cubin.
    pub(super) fn from_code(context: &Context, code: &[u8]) -> Result<Self, Error> {
        let driver = context.enter()?;
        // The driver reads words of it.
        let mut words = vec![0_u64; code.len().div_ceil(8) + 1];
        for (word, bytes) in words.iter_mut().zip(code.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer; the code says how long it is, and is not kept.
        let status = unsafe { (driver.functions().cuModuleLoadData)(&raw mut handle, words.as_ptr().cast()) };
        driver.check("cuModuleLoadData", status)?;
        let context = context.clone();
        let loaded = Rc::new(Loaded { context, handle });
        Ok(Self { loaded })
    }

    /// A kernel by its name.
    ///
    /// # Errors
    ///
    /// 500 when the module has none of that name.
    pub fn function(&self, name: &CStr) -> Result<Function, Error> {
        let driver = self.loaded.context.enter()?;
        let mut handle = std::ptr::null_mut();
        let call = driver.functions().cuModuleGetFunction;
        // SAFETY: writes one pointer; module and name are alive.
        let status = unsafe { call(&raw mut handle, self.loaded.handle, name.as_ptr()) };
        driver.check("cuModuleGetFunction", status)?;
        let module = Rc::clone(&self.loaded);
        Ok(Function { module, handle })
    }

    /// Where a variable lies, and how many bytes it has.
    ///
    /// # Errors
    ///
    /// 500 when the module has none of that name.
    pub fn variable(&self, name: &CStr) -> Result<(u64, u64), Error> {
        let driver = self.loaded.context.enter()?;
        let call = driver
            .functions()
            .cuModuleGetGlobal_v2
            .ok_or_else(|| super::missing("cuModuleGetGlobal"))?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: writes an address and a size; module and name are alive.
        let status = unsafe {
            call(
                &raw mut address,
                &raw mut bytes,
                self.loaded.handle,
                name.as_ptr(),
            )
        };
        driver.check("cuModuleGetGlobal", status)?;
        Ok((address, bytes as u64))
    }
}

/// Something that is said of a launch beside its size: its number and its value,
/// as `CUlaunchAttribute` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchAttribute {
    /// `CUlaunchAttributeID`.
    pub id: u32,
    /// `CUlaunchAttributeValue`.
    pub value: [u8; 64],
}

impl Function {
    /// Starts the kernel with parameters as they lie in its parameter space, in
    /// a stream or in that which is everyone's.
    ///
    /// # Safety
    ///
    /// The kernel takes these parameters, and what it reads and writes through
    /// them is memory that is there until it is done.
    ///
    /// # Errors
    ///
    /// What the driver says, which may be about work before.
    pub unsafe fn launch_with(
        &self,
        launch: Launch,
        parameters: &[u8],
        attributes: &[LaunchAttribute],
        stream: Option<&Stream>,
    ) -> Result<(), Error> {
        let driver = self.module.context.enter()?;
        let call = driver
            .functions()
            .cuLaunchKernelEx
            .ok_or_else(|| missing("cuLaunchKernelEx"))?;
        let attributes: Vec<_> = attributes
            .iter()
            .map(|attribute| parameters::LaunchAttribute {
                id: attribute.id,
                padding: 0,
                value: attribute.value,
            })
            .collect();
        let config = parameters::LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared_bytes,
            stream: stream.map_or(std::ptr::null_mut(), |stream| stream.handle),
            attributes: attributes.as_ptr(),
            attribute_count: attributes.len() as u32,
        };
        let mut size = parameters.len();
        let mut extra = [
            parameters::EXTRA_POINTER as *mut c_void,
            parameters.as_ptr().cast_mut().cast(),
            parameters::EXTRA_SIZE as *mut c_void,
            (&raw mut size).cast(),
            parameters::EXTRA_END as *mut c_void,
        ];
        let extra = if parameters.is_empty() {
            std::ptr::null_mut()
        } else {
            extra.as_mut_ptr()
        };
        // SAFETY: function and stream are alive, the parameters are copied before the call returns, and what the
        // kernel does with them is what our caller vouches for.
        let status = unsafe { call(&raw const config, self.handle, std::ptr::null_mut(), extra) };
        driver.check("cuLaunchKernelEx", status)
    }

    /// Where each of its parameters lies; none when the driver is too old to say
    /// (before CUDA 12.4).
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn parameters(&self) -> Result<Option<Vec<Parameter>>, Error> {
        let driver = self.module.context.enter()?;
        let Some(call) = driver.functions().cuFuncGetParamInfo else {
            return Ok(None);
        };
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: writes two sizes; the function is loaded.
            let status = unsafe { call(self.handle, parameters.len(), &raw mut offset, &raw mut bytes) };
            if status == BEHIND_THE_LAST {
                return Ok(Some(parameters));
            }
            driver.check("cuFuncGetParamInfo", status)?;
            parameters.push(Parameter { offset, bytes });
        }
    }

    /// Sets an attribute, by its number in `CUfunction_attribute`.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn set_attribute(&self, attribute: u32, value: i32) -> Result<(), Error> {
        let driver = self.module.context.enter()?;
        let call = driver
            .functions()
            .cuFuncSetAttribute
            .ok_or_else(|| missing("cuFuncSetAttribute"))?;
        // SAFETY: the function is loaded.
        driver.check("cuFuncSetAttribute", unsafe {
            call(self.handle, attribute, value)
        })
    }

    /// Starts the kernel. Returns before it is done, and may return before it
    /// has begun.
    ///
    /// # Safety
    ///
    /// The kernel takes `N` arguments of these sizes, in this order, and what it
    /// reads and writes through them is memory that is there until it is done
    /// and that nobody else works on meanwhile.
    ///
    /// # Errors
    ///
    /// What the driver says, which may be about work before.
    pub unsafe fn launch<const N: usize>(
        &self,
        launch: Launch,
        arguments: [Argument; N],
        stream: &Stream,
    ) -> Result<(), Error> {
        let driver = self.module.context.enter()?;
        let mut values = arguments.map(Argument::bits);
        let mut pointers = values.each_mut().map(|value| (&raw mut *value).cast::<c_void>());
        let Launch {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        } = launch;
        let call = driver.functions().cuLaunchKernel;
        // SAFETY: the function is loaded, the stream alive, the arguments are copied before the call returns, and
        // what the kernel does with them is what our caller vouches for.
        let status = unsafe {
            call(
                self.handle,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared_bytes,
                stream.handle,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        driver.check("cuLaunchKernel", status)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure. Code may not go while it runs.
        let _ = self.context.synchronize();
        self.context.leave_to(|driver| {
            // SAFETY: loaded by us; its functions, which kept it, are gone.
            let _ = unsafe { (driver.functions().cuModuleUnload)(self.handle) };
        });
    }
}
