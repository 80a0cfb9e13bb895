//! The judge as its callers use it.

#[cfg(test)]
mod common;
mod joint;
#[cfg(test)]
mod precision;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod stochastic;
