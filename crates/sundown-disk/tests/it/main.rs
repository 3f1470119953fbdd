//! The durable store on real files: what survives, and what is refused.

mod damage;
mod full;
mod restart;
mod world;
