//! Results of CUPTI by name.

/// A `CUptiResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuptiCode(pub(crate) u32);

impl CuptiCode {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_PARAMETER: Self = Self(1);
    pub(crate) const INVALID_CONTEXT: Self = Self(3);
    pub(crate) const INVALID_OPERATION: Self = Self(7);
    pub(crate) const PARAMETER_SIZE_NOT_SUFFICIENT: Self = Self(10);
    pub(crate) const MAX_LIMIT_REACHED: Self = Self(12);
    pub(crate) const NOT_COMPATIBLE: Self = Self(14);
    pub(crate) const NOT_INITIALIZED: Self = Self(15);
    pub(crate) const QUEUE_EMPTY: Self = Self(18);
    pub(crate) const INVALID_STREAM: Self = Self(20);
    pub(crate) const INVALID_KIND: Self = Self(21);
    pub(crate) const NOT_SUPPORTED: Self = Self(27);
    pub(crate) const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: Self = Self(39);

    /// The name in the C header, ended by a zero byte.
    pub(crate) fn c_name(self) -> &'static str {
        match self {
            Self::SUCCESS => "CUPTI_SUCCESS\0",
            Self::INVALID_PARAMETER => "CUPTI_ERROR_INVALID_PARAMETER\0",
            Self::INVALID_CONTEXT => "CUPTI_ERROR_INVALID_CONTEXT\0",
            Self::INVALID_OPERATION => "CUPTI_ERROR_INVALID_OPERATION\0",
            Self::PARAMETER_SIZE_NOT_SUFFICIENT => "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT\0",
            Self::MAX_LIMIT_REACHED => "CUPTI_ERROR_MAX_LIMIT_REACHED\0",
            Self::NOT_COMPATIBLE => "CUPTI_ERROR_NOT_COMPATIBLE\0",
            Self::NOT_INITIALIZED => "CUPTI_ERROR_NOT_INITIALIZED\0",
            Self::QUEUE_EMPTY => "CUPTI_ERROR_QUEUE_EMPTY\0",
            Self::INVALID_STREAM => "CUPTI_ERROR_INVALID_STREAM\0",
            Self::INVALID_KIND => "CUPTI_ERROR_INVALID_KIND\0",
            Self::NOT_SUPPORTED => "CUPTI_ERROR_NOT_SUPPORTED\0",
            Self::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED\0",
            _ => "CUPTI_ERROR_UNKNOWN\0",
        }
    }

    pub(crate) fn of(outcome: Result<(), Self>) -> u32 {
        match outcome {
            Ok(()) => Self::SUCCESS.0,
            Err(code) => code.0,
        }
    }
}
