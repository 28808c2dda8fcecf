//! Tables of functions, filled from a library that was opened.

/// Defines a struct of C functions and how it is loaded: those after `required`
/// must be there, those after `optional` may be missing.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        $name:ident from $library:literal;
        required { $($(#[$required_meta:meta])* fn $required:ident($($required_arg:ident: $required_type:ty),* $(,)?) -> $required_result:ty;)* }
        optional { $($(#[$optional_meta:meta])* fn $optional:ident($($optional_arg:ident: $optional_type:ty),* $(,)?) -> $optional_result:ty;)* }
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the functions' own names")]
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            $($(#[$required_meta])* pub(crate) $required: unsafe extern "C" fn($($required_type),*) -> $required_result,)*
            $($(#[$optional_meta])* pub(crate) $optional: Option<unsafe extern "C" fn($($optional_type),*) -> $optional_result>,)*
        }

        impl $name {
            /// Looks the functions up.
            pub(crate) fn load(library: &$crate::library::Library) -> Result<Self, $crate::Error> {
                Ok(Self {
                    $($required: {
                        let address = library.address(stringify!($required)).ok_or($crate::Error::MissingFunction {
                            library: $library,
                            function: stringify!($required),
                        })?;
                        // SAFETY: the library documents this function with this signature.
                        unsafe { ::std::mem::transmute::<*const ::std::ffi::c_void, unsafe extern "C" fn($($required_type),*) -> $required_result>(address.as_ptr()) }
                    },)*
                    $($optional: library.address(stringify!($optional)).map(|address|
                        // SAFETY: the library documents this function with this signature.
                        unsafe { ::std::mem::transmute::<*const ::std::ffi::c_void, unsafe extern "C" fn($($optional_type),*) -> $optional_result>(address.as_ptr()) }
                    ),)*
                })
            }
        }
    };
}
pub(crate) use functions;
