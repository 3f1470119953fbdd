//! Jobs and their pods, told step by step.

mod shop;
mod stories;
