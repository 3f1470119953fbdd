//! The library as an outside user sees it: kube-rs and k8s-openapi against `Embedded`.

mod access;
mod clock;
mod deletion;
mod durable;
mod ecosystem;
mod flight;
mod https;
mod namespaces;
mod new_kinds;
mod rest;
mod world;
