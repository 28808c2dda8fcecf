//! The C functions of libcupti.

mod activity;
mod attributes;
mod callback;
mod identity;
