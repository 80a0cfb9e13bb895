//! Asks the rules that look at one kernel at a time; nearly all of them are advice.

use ruff_python_ast::ModModule;
use tilewright_contract::Finding;

use super::kernels::{Kernels, collect};
use super::{
    arange_power_of_two, autotune_key, dot_precision, half_accumulator, half_reduction, inline_asm, int32_offset,
    softmax_without_max, spin_loop, too_many_warps, unmasked_tail,
};
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::Scopes;
use crate::source::Source;

pub(crate) fn advise<'a>(
    module: &'a ModModule,
    source: &Source,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
    found: &Discovered<'a>,
) -> Vec<Finding> {
    let mut kernels = Kernels::new(source, scopes, names);
    for kernel in collect(&module.body, found, scopes, names) {
        arange_power_of_two::check(&mut kernels, &kernel);
        autotune_key::check(&mut kernels, &kernel);
        dot_precision::check(&mut kernels, &kernel);
        half_accumulator::check(&mut kernels, &kernel);
        half_reduction::check(&mut kernels, &kernel);
        inline_asm::check(&mut kernels, &kernel);
        int32_offset::check(&mut kernels, &kernel);
        softmax_without_max::check(&mut kernels, &kernel);
        spin_loop::check(&mut kernels, &kernel);
        too_many_warps::check(&mut kernels, &kernel);
        unmasked_tail::check(&mut kernels, &kernel);
    }
    kernels.findings
}
