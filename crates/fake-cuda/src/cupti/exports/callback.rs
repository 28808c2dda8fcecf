//! Callbacks: subscribing and choosing.
//! <https://docs.nvidia.com/cupti/api/group__CUPTI__CALLBACK__API.html>

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_char;

use crate::cupti::call_names;
use crate::cupti::code::CuptiCode;
use crate::cupti::subscriber::{self, CallbackFunction, Domain, Wish};
use crate::pointer::Out;

#[unsafe(no_mangle)]
extern "C" fn cuptiSubscribe(
    subscriber: Out<usize>,
    callback: Option<CallbackFunction>,
    user_data: usize,
) -> u32 {
    let Some(callback) = callback else {
        return CuptiCode::INVALID_PARAMETER.0;
    };
    CuptiCode::of(subscriber::subscribe(callback, user_data).map(|handle| subscriber.put_if_wanted(handle)))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiUnsubscribe(subscriber: usize) -> u32 {
    CuptiCode::of(subscriber::unsubscribe(subscriber))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableCallback(enable: u32, subscriber: usize, domain: u32, cbid: u32) -> u32 {
    CuptiCode::of(
        subscriber::check(subscriber)
            .and_then(|()| Domain::by_number(domain))
            .and_then(|domain| subscriber::want(domain, cbid, Wish::from_c(enable))),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableDomain(enable: u32, subscriber: usize, domain: u32) -> u32 {
    CuptiCode::of(
        subscriber::check(subscriber)
            .and_then(|()| Domain::by_number(domain))
            .map(|domain| subscriber::want_domain(domain, Wish::from_c(enable))),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableAllDomains(enable: u32, subscriber: usize) -> u32 {
    CuptiCode::of(subscriber::check(subscriber).map(|()| {
        for domain in Domain::ALL {
            subscriber::want_domain(domain, Wish::from_c(enable));
        }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetCallbackState(enabled: Out<u32>, subscriber: usize, domain: u32, cbid: u32) -> u32 {
    CuptiCode::of(
        subscriber::check(subscriber)
            .and_then(|()| Domain::by_number(domain))
            .map(|domain| enabled.put_if_wanted(u32::from(subscriber::is_wanted(domain, cbid)))),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetCallbackName(domain: u32, cbid: u32, name: Out<*const c_char>) -> u32 {
    CuptiCode::of(Domain::by_number(domain).and_then(|domain| {
        let found = call_names::of(domain, cbid).ok_or(CuptiCode::INVALID_PARAMETER)?;
        name.put(found.as_ptr()).map_err(|_| CuptiCode::INVALID_PARAMETER)
    }))
}
