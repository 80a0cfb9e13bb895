//! Enumerated attributes: their keywords, and how MLIR's generic form writes them.

use crate::ir::{Attr, Type};

/// How the generic form writes a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As an integer of this width: `cache = 1 : i32`.
    Int(u32),
    /// By keyword: `#arith.fastmath<none>`; the cases are flags.
    Flags(&'static str),
}

#[derive(Debug)]
pub(crate) struct EnumKind {
    pub(crate) name: &'static str,
    pub(crate) coding: Coding,
    cases: &'static [(&'static str, i128)],
}

const fn int(name: &'static str, width: u32, cases: &'static [(&'static str, i128)]) -> EnumKind {
    EnumKind { name, coding: Coding::Int(width), cases }
}

/// `key=value` pairs would not fit the numbering, so each case states its own number.
static KINDS: &[EnumKind] = &[
    int("cache", 32, &[("none", 1), ("ca", 2), ("cg", 3), ("wb", 4), ("cs", 5), ("wt", 6), ("cv", 7)]),
    int("evict", 32, &[("evict_normal", 1), ("evict_first", 2), ("evict_last", 3)]),
    int("padding", 32, &[("zero", 1), ("nan", 2)]),
    int("sem", 32, &[("relaxed", 1), ("acquire", 2), ("release", 3), ("acq_rel", 4)]),
    int("scope", 32, &[("gpu", 1), ("cta", 2), ("sys", 3)]),
    int(
        "rmw",
        32,
        &[
            ("and", 1),
            ("or", 2),
            ("xor", 3),
            ("add", 4),
            ("fadd", 5),
            ("max", 6),
            ("min", 7),
            ("umax", 8),
            ("umin", 9),
            ("exch", 10),
        ],
    ),
    int(
        "reduce_kind",
        32,
        &[("add", 1), ("min", 2), ("max", 3), ("inc", 4), ("dec", 5), ("and", 6), ("or", 7), ("xor", 8)],
    ),
    int("axis", 32, &[("x", 0), ("y", 1), ("z", 2)]),
    int("rounding", 32, &[("rtz", 0), ("rtne", 1)]),
    int("propagate_nan", 32, &[("none", 0), ("all", 0xFFFF)]),
    int("precision", 32, &[("tf32", 0), ("tf32x3", 1), ("ieee", 2), ("bf16x3", 3), ("bf16x6", 4)]),
    int("elem", 32, &[("e4m3", 0), ("e5m2", 1), ("e2m3", 2), ("e3m2", 3), ("e2m1", 4), ("bf16", 5), ("fp16", 6)]),
    int(
        "arith_rounding",
        32,
        &[("to_nearest_even", 0), ("downward", 1), ("upward", 2), ("toward_zero", 3), ("to_nearest_away", 4)],
    ),
    int(
        "cmpi",
        64,
        &[
            ("eq", 0),
            ("ne", 1),
            ("slt", 2),
            ("sle", 3),
            ("sgt", 4),
            ("sge", 5),
            ("ult", 6),
            ("ule", 7),
            ("ugt", 8),
            ("uge", 9),
        ],
    ),
    int(
        "cmpf",
        64,
        &[
            ("false", 0),
            ("oeq", 1),
            ("ogt", 2),
            ("oge", 3),
            ("olt", 4),
            ("ole", 5),
            ("one", 6),
            ("ord", 7),
            ("ueq", 8),
            ("ugt", 9),
            ("uge", 10),
            ("ult", 11),
            ("ule", 12),
            ("une", 13),
            ("uno", 14),
            ("true", 15),
        ],
    ),
    EnumKind {
        name: "fastmath",
        coding: Coding::Flags("arith.fastmath"),
        cases: &[
            ("none", 0),
            ("reassoc", 1),
            ("nnan", 2),
            ("ninf", 4),
            ("nsz", 8),
            ("arcp", 16),
            ("contract", 32),
            ("afn", 64),
            ("fast", 127),
        ],
    },
    EnumKind {
        name: "overflow",
        coding: Coding::Flags("arith.overflow"),
        cases: &[("none", 0), ("nsw", 1), ("nuw", 2)],
    },
];

impl EnumKind {
    pub(crate) fn by_name(name: &str) -> Option<&'static EnumKind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        match self.coding {
            Coding::Int(_) => self.cases.iter().any(|(case, _)| *case == keyword),
            Coding::Flags(_) => keyword.split(", ").all(|flag| self.cases.iter().any(|(case, _)| *case == flag)),
        }
    }

    /// All keywords, for messages.
    pub(crate) fn keywords(&self) -> String {
        let names: Vec<_> = self.cases.iter().map(|(case, _)| *case).collect();
        names.join(", ")
    }

    /// The case that an attribute of the generic form stands for; anything else is returned as it is.
    pub(crate) fn decode(&self, attr: Attr) -> Attr {
        let case = match (&attr, self.coding) {
            (Attr::Int(value, _), Coding::Int(_)) => {
                self.cases.iter().find(|(_, number)| number == value).map(|(case, _)| (*case).to_owned())
            }
            (Attr::Raw(text), Coding::Flags(dialect)) => flags_of(text, dialect).filter(|flags| self.has(flags)),
            _ => None,
        };
        case.map_or(attr, Attr::Enum)
    }

    /// The generic form of a case.
    pub(crate) fn encode(&self, keyword: &str) -> Option<Attr> {
        match self.coding {
            Coding::Int(width) => {
                let (_, number) = self.cases.iter().find(|(case, _)| *case == keyword)?;
                Some(Attr::Int(*number, Type::Int(width)))
            }
            Coding::Flags(dialect) => Some(Attr::Raw(format!("#{dialect}<{}>", keyword.replace(", ", ",")))),
        }
    }
}

/// `#arith.fastmath<nnan,ninf>` as `nnan, ninf`
fn flags_of(text: &str, dialect: &str) -> Option<String> {
    let flags = text.strip_prefix('#')?.strip_prefix(dialect)?.strip_prefix('<')?.strip_suffix('>')?;
    Some(flags.split(',').map(str::trim).collect::<Vec<_>>().join(", "))
}
