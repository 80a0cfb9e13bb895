//! Snapshots of kernel-only modules; each is also executed under the real Triton and compared with its file.

mod support;

use std::fs;

use support::{Module, crate_root, execute};
use tilewright_screen::cut;

#[test]
fn kernel_only_modules() {
    let mut modules = Vec::new();
    for name in ["aliases", "compile_time", "conditional", "constants", "layout", "nested", "refused", "stars"] {
        let text = fs::read_to_string(crate_root().join(format!("tests/cut/{name}.py"))).unwrap();
        let cut = cut(text.as_bytes()).unwrap();
        let kernels = cut.kernels.iter().map(|kernel| {
            let params = kernel.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
            format!("{}: {}({params}) {:?}\n", kernel.line, kernel.name, kernel.decorators)
        });
        let findings = cut
            .findings
            .iter()
            .map(|finding| format!("{}:{} [{}] {}\n", finding.line, finding.column, finding.rule, finding.message));
        let shown = format!(
            "{}----- kernels\n{}----- findings\n{}",
            cut.module,
            kernels.collect::<String>(),
            findings.collect::<String>()
        );
        insta::assert_snapshot!(name, shown);
        // `refused` holds what Triton itself refuses to wrap.
        let candidate = (name != "refused").then_some(text);
        modules.push(Module { id: name.to_owned(), cut, candidate });
    }
    execute(&modules).unwrap();
}
