//! Walks through the whole model, and finds each planted fault.

mod faults;
mod searches;
