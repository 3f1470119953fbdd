//! The server from the outside: kube's client in process and over HTTPS, and a bare HTTP/2 client.

mod access;
mod crowd;
mod crud;
mod documents;
mod durable;
mod http2;
mod limits;
mod load;
mod logs;
mod stopping;
mod time;
mod usage;
mod withdrawn;
mod world;
