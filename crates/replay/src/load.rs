//! Loads the modules of a recording.

use std::collections::hash_map::Entry;
use std::ffi::CString;

use rustc_hash::FxHashMap;
use tracesmith_cuda::cubin;
use tracesmith_cuda::driver::{Context, Device, Function, Module};
use tracesmith_format::tables::CommandKind;

use crate::contents::Hash;
use crate::error::Error;
use crate::plan::{ModuleKey, Plan};
use crate::recording::{Command, Recording};
use crate::run::Moved;

/// `CU_FUNC_ATTRIBUTE_` MAX_DYNAMIC_SHARED_SIZE_BYTES and NON_PORTABLE_CLUSTER_SIZE_ALLOWED.
pub(crate) const MAX_DYNAMIC_SHARED: u32 = 8;
pub(crate) const NON_PORTABLE_CLUSTER: u32 = 14;

/// Shared memory that a kernel can use without an attribute.
pub(crate) const FREE_SHARED: u32 = 48 << 10;

/// The maximum shared memory of each kernel. A program can change the limit between launches, and a launch fails if
/// the limit is too low. Static and dynamic shared memory count together, so the limit is set for every kernel that
/// uses any.
fn most_shared(commands: &[Command]) -> FxHashMap<(u64, String), u32> {
    let mut most: FxHashMap<(u64, String), u32> = FxHashMap::default();
    for command in commands {
        let bytes = match command.kind {
            CommandKind::LAUNCH => command.shared,
            CommandKind::ATTRIBUTE if command.object == u64::from(MAX_DYNAMIC_SHARED) => command.value as u32,
            _ => 0,
        };
        if bytes > 0 {
            let key = (command.module, command.function.clone());
            let most = most.entry(key).or_default();
            *most = bytes.max(*most);
        }
    }
    most
}

/// Checks the compute capability. A cubin runs on devices of the same major version, with the same or a higher minor
/// version. The driver compiles everything else.
pub(crate) fn check_architecture(
    recording: &mut Recording,
    plan: &Plan,
    device: &Device,
) -> Result<(), Error> {
    let asked = || Error::device("querying the device");
    let (major, minor) = device.capability().map_err(asked())?;
    let mut kernels: Vec<(&String, Hash)> = plan.code.iter().map(|((_, name), hash)| (name, *hash)).collect();
    kernels.sort();
    kernels.dedup_by_key(|(_, hash)| *hash);
    for (name, hash) in kernels {
        let Some((of, step)) = cubin::capability(&recording.store.code(hash)?) else {
            continue;
        };
        if of != major || step > minor {
            return Err(Error::Obstacle(format!(
                "the module of {name} was compiled for compute capability {of}.{step}, but {} has {major}.{minor}",
                device.name().map_err(asked())?
            )));
        }
    }
    Ok(())
}

type Loaded = (FxHashMap<(u64, String), Function>, Vec<Moved>);

/// Loads the module of every launched kernel and sets its function attributes. Returns where module globals are now.
pub(crate) fn load(context: &Context, recording: &mut Recording, plan: &Plan) -> Result<Loaded, Error> {
    let mut modules: FxHashMap<ModuleKey, Module> = FxHashMap::default();
    let mut functions = FxHashMap::default();
    for (key, hash) in &plan.code {
        let module = match modules.entry((key.0, *hash)) {
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(vacant) => {
                let code = recording.store.code(*hash)?;
                let module = context
                    .module_of(&code)
                    .map_err(Error::device(format!("loading the module of {}", key.1)))?;
                vacant.insert(module)
            }
        };
        let name =
            CString::new(key.1.as_str()).map_err(|_| Error::Missing("the name of a kernel".to_owned()))?;
        let function = module
            .function(&name)
            .map_err(Error::device(format!("finding {}", key.1)))?;
        functions.insert(key.clone(), function);
    }
    for command in &recording.commands {
        let Some(function) = functions.get(&(command.module, command.function.clone())) else {
            continue;
        };
        match command.kind {
            CommandKind::ATTRIBUTE if command.object != u64::from(MAX_DYNAMIC_SHARED) => {
                // If this driver rejects the value, the launch reports it.
                let _ = function.set_attribute(command.object as u32, command.value as i32);
            }
            CommandKind::LAUNCH if !command.attributes.is_empty() => {
                let _ = function.set_attribute(NON_PORTABLE_CLUSTER, 1);
            }
            _ => {}
        }
    }
    for (key, bytes) in most_shared(&recording.commands) {
        if let Some(function) = functions.get(&key) {
            // If this driver rejects the value, the launch reports it.
            let _ = function.set_attribute(MAX_DYNAMIC_SHARED, bytes as i32);
        }
    }
    let mut moved = Vec::new();
    for variable in &plan.variables {
        let name = CString::new(variable.name.as_str())
            .map_err(|_| Error::Missing("the name of a module global".to_owned()))?;
        let (address, bytes) = modules[&variable.module]
            .variable(&name)
            .map_err(Error::device(format!(
                "finding the module global {}",
                variable.name
            )))?;
        let was = variable.was.clone();
        if bytes != was.end - was.start {
            return Err(Error::Obstacle(format!(
                "the module global {} has {bytes} bytes, but {} in the recording",
                variable.name,
                was.end - was.start
            )));
        }
        moved.push(Moved { was, is: address });
    }
    moved.sort_by_key(|moved: &Moved| moved.was.start);
    Ok((functions, moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(kind: CommandKind, function: &str) -> Command {
        Command {
            kind,
            function: function.to_owned(),
            ..Command::default()
        }
    }

    #[test]
    fn a_kernel_may_use_as_much_shared_memory_as_its_largest_launch() {
        let launch = |shared| Command {
            shared,
            ..command(CommandKind::LAUNCH, "norm")
        };
        let set = |value| Command {
            object: MAX_DYNAMIC_SHARED.into(),
            value,
            ..command(CommandKind::ATTRIBUTE, "norm")
        };
        let key = (0, "norm".to_owned());
        // The limit is lowered later, and the last launch is not the largest.
        let commands = [set(100 << 10), launch(90 << 10), set(60 << 10), launch(60 << 10)];
        assert_eq!(most_shared(&commands)[&key], 100 << 10);
        assert_eq!(most_shared(&[launch(90 << 10), launch(60 << 10)])[&key], 90 << 10);
        assert!(most_shared(&[launch(0)]).is_empty());
    }
}
