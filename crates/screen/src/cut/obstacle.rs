use ruff_text_size::TextSize;
use tilewright_contract::{Finding, Tier};

use crate::source::Source;

/// What keeps a kernel from being cut out of its file. Each variant is a rule of tier `untraceable`:
/// it matters only if that kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// # What it does
    ///
    /// The kernel uses a variable of the function around it, such as a parameter.
    ///
    /// # Why is this bad?
    ///
    /// Its value exists only while the file runs, and a kernel is compiled from its text alone.
    ///
    /// # Use instead
    ///
    /// Pass the value as a `tl.constexpr` parameter.
    Captures,
    /// # What it does
    ///
    /// The kernel uses a global whose value is computed when the file runs, or that can change.
    ///
    /// # Why is this bad?
    ///
    /// `os.environ.get(...)`, a function call or a list may give another value on the next run.
    ///
    /// # Use instead
    ///
    /// Write a literal, arithmetic of literals, or pass the value as a `tl.constexpr` parameter.
    RuntimeValue,
    /// # What it does
    ///
    /// The kernel uses a global that is bound more than once.
    ///
    /// # Why is this bad?
    ///
    /// Which value it has depends on when the kernel is launched.
    ///
    /// # Use instead
    ///
    /// Bind it once.
    Reassigned,
    /// # What it does
    ///
    /// The kernel uses something imported from outside of Triton.
    ///
    /// # Why is this bad?
    ///
    /// Only `triton`, `triton.language` and constants of `math` exist where kernels are compiled.
    ///
    /// # Use instead
    ///
    /// Use `triton.language` or `libdevice`.
    ForeignImport,
    /// # What it does
    ///
    /// The kernel calls a plain Python function, or uses a class.
    ///
    /// # Why is this bad?
    ///
    /// Device code is `@triton.jit` functions; host objects do not exist there.
    ///
    /// # Use instead
    ///
    /// Decorate the helper with `@triton.jit`.
    CallsPython,
    /// # What it does
    ///
    /// The function is not a plain `def` under `@triton.jit`: other decorators below it, computed
    /// decorator arguments, `async`, a lambda.
    ///
    /// # Why is this bad?
    ///
    /// What would be compiled is not what the file shows.
    ///
    /// # Use instead
    ///
    /// A plain `def` with `@triton.jit` directly above it.
    NotPlain,
    /// # What it does
    ///
    /// Two different things of the same name would be needed in one module.
    ///
    /// # Why is this bad?
    ///
    /// Kernels are cut into one flat module.
    ///
    /// # Use instead
    ///
    /// Give them different names.
    NameClash,
}

impl Reason {
    fn rule(self) -> &'static str {
        match self {
            Self::Captures => "kernel-captures-value",
            Self::RuntimeValue => "kernel-uses-runtime-value",
            Self::Reassigned => "kernel-uses-reassigned-name",
            Self::ForeignImport => "kernel-uses-foreign-import",
            Self::CallsPython => "kernel-calls-python",
            Self::NotPlain => "kernel-not-plain",
            Self::NameClash => "kernel-name-clash",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Captures => "pass the value as a `tl.constexpr` parameter",
            Self::RuntimeValue => "write a literal, or pass the value as a `tl.constexpr` parameter",
            Self::Reassigned => "bind the name once",
            Self::ForeignImport => "use `triton.language` or `libdevice` inside kernels",
            Self::CallsPython => "decorate the helper with `@triton.jit`",
            Self::NotPlain => "write a plain `def` with `@triton.jit` directly above it",
            Self::NameClash => "give the two different names",
        }
    }
}

/// A [`Reason`] at a place.
#[derive(Debug, Clone)]
pub(crate) struct Obstacle {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) at: TextSize,
}

impl Obstacle {
    pub(crate) fn new(reason: Reason, at: TextSize, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), at }
    }

    /// Moves it to where the kernel uses the thing, for the reasons that lie there.
    pub(crate) fn used_at(self, at: TextSize) -> Self {
        match self.reason {
            Reason::Captures | Reason::ForeignImport | Reason::CallsPython => Self { at, ..self },
            _ => self,
        }
    }

    pub(crate) fn finding(&self, kernel: &str, source: &Source) -> Finding {
        Finding {
            rule: self.reason.rule().to_owned(),
            tier: Tier::Untraceable,
            message: format!("kernel `{kernel}` cannot be cut out of the file: {}", self.message),
            line: source.line(self.at),
            column: source.column(self.at),
            help: Some(self.reason.help().to_owned()),
        }
    }
}
