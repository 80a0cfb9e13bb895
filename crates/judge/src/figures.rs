//! Figures of a comparison that was made where the output is: in the oracle's process, on a GPU.

use serde::{Deserialize, Serialize};
use tilewright_contract::{ExpectedTensor, Profile, Rule};

use crate::compare::must_equal;
use crate::scan::Scan;

/// What `python/tilewright/cell/scan.py` says of one tensor under one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    #[serde(flatten)]
    pub(crate) scan: Scan,
    /// What values were divided by.
    #[serde(with = "as_text")]
    pub(crate) unit: f64,
    /// The worst element.
    pub(crate) element: Option<Element>,
}

/// The bytes of one element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Element {
    pub(crate) native: Vec<u8>,
    pub(crate) float64: Option<Vec<u8>>,
    pub(crate) got: Vec<u8>,
}

impl Figures {
    /// Whether they can be what a comparison with this tensor gives: complete, of all of its elements, and without NaN,
    /// which no limit holds. What does not fit is not judged.
    pub fn fit(&self, profile: &Profile, expected: &ExpectedTensor) -> bool {
        let (scan, elements) = (&self.scan, expected.shape.iter().product::<u64>());
        let size = expected.dtype.size();
        let inside = |at: Option<(f64, usize)>| at.is_none_or(|(score, at)| (at as u64) < elements && score >= 0.0);
        let whole = |element: &Element| {
            element.native.len() as u64 == size
                && element.got.len() as u64 == size
                && element.float64.as_ref().is_none_or(|raw| raw.len() == 8)
        };
        let exact = must_equal(profile, expected);
        let counted = scan.finite.checked_add(scan.pattern).is_some_and(|seen| seen <= elements);
        let grouped = profile.rule == Rule::ScaledRms && !exact;
        scan.elements == elements
            && scan.sums().iter().all(|figure| *figure >= 0.0)
            && self.unit > 0.0
            && counted
            && (scan.pattern..=elements).contains(&scan.mismatched)
            && scan.matched <= scan.finite
            && inside(scan.worst)
            && inside(scan.group)
            && (scan.worst.is_some() || scan.finite + scan.mismatched == 0)
            && (scan.group.is_some() || scan.finite == 0 || !grouped)
            && scan.worst.is_some() == self.element.is_some()
            && self.element.as_ref().is_none_or(whole)
    }
}

/// Floats as text: JSON has no infinities, and not every parser reads its numbers exactly.
pub(crate) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:?}"))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same with an index beside it.
pub(crate) mod place_as_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &Option<(f64, usize)>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|(score, at)| (format!("{score:?}"), at)).serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<(f64, usize)>, D::Error> {
        let place: Option<(String, usize)> = Option::deserialize(from)?;
        place.map(|(score, at)| Ok((score.parse().map_err(D::Error::custom)?, at))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use serde_json::{Value, json};
    use tilewright_contract::{Blob, Dtype};

    use super::*;
    use crate::compare::{compare, judge_figures};
    use crate::groups::Groups;
    use crate::scan::{Limits, Overview, Sources, Typical};
    use crate::value::{decode, round_to};

    const FLOATS: [Dtype; 6] = [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];

    /// One tensor as the oracle and a candidate have it.
    struct Case {
        dtype: Dtype,
        shape: Vec<u64>,
        /// Elements that the other side looks at together.
        chunk: u64,
        native: Vec<u8>,
        float64: Option<Vec<u8>>,
        got: Vec<u8>,
    }

    /// A generator of numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        }

        fn below(&mut self, limit: u64) -> u64 {
            self.next() % limit
        }

        /// Between -1 and 1.
        fn unit(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    /// The bytes of a value rounded to a dtype, found among all of its patterns where it has few.
    fn encode(dtype: Dtype, value: f64, table: &[f64]) -> Vec<u8> {
        let rounded = round_to(dtype, value);
        match dtype {
            Dtype::F64 => value.to_le_bytes().to_vec(),
            Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
            Dtype::F16 => half::f16::from_f64(rounded).to_le_bytes().to_vec(),
            Dtype::Bf16 => half::bf16::from_f64(rounded).to_le_bytes().to_vec(),
            _ => {
                let same = |&at: &usize| table[at] == rounded || (table[at].is_nan() && rounded.is_nan());
                vec![(0..table.len()).find(same).unwrap() as u8]
            }
        }
    }

    fn case(numbers: &mut Numbers, shape: &[u64], kind: usize) -> Case {
        let dtype = FLOATS[numbers.below(6) as usize];
        let total = shape.iter().product::<u64>();
        let mut table = Vec::new();
        decode(dtype, &(0..=255).collect::<Vec<u8>>(), &mut table);
        let size = [1.0, 1e-3, 300.0, 1e30, 1e-200, 6e4][numbers.below(6) as usize];
        // Sizes that the dtype does not hold are infinite or zero in it, which is one of the cases.
        let size = if dtype == Dtype::F64 || numbers.below(3) == 0 { size } else { 1.0 };
        let noise = [0.0, 1e-7, 1e-4, 1e-2, 1.0][numbers.below(5) as usize];
        let (mut native, mut float64, mut got) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..total {
            let row = [1.0, 1e-5, 0.0, 1.0][(at / shape.last().unwrap() % 4) as usize];
            let mut wide = numbers.unit() * size * if kind == 1 { row } else { 1.0 };
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            if kind == 2 && numbers.below(50) == 0 {
                wide = odd[numbers.below(3) as usize];
            }
            let mut found = wide * (1.0 + noise * numbers.unit()) + noise * 1e-3 * size * numbers.unit();
            if kind == 3 && numbers.below(total) < 3 {
                found = odd[numbers.below(3) as usize];
            }
            // The reference in its own dtype is off, too.
            let own = if numbers.below(40) == 0 { wide * 1.01 } else { wide };
            native.extend(encode(dtype, own, &table));
            got.extend(encode(dtype, if kind == 4 { own } else { found }, &table));
            float64.extend(wide.to_le_bytes());
        }
        let chunk = [1 << 22, total / 2 + 1, total / 5 + 1][numbers.below(3) as usize];
        let float64 = (numbers.below(3) > 0).then_some(float64);
        Case { dtype, shape: shape.to_vec(), chunk, native, float64, got }
    }

    fn cases() -> Vec<Case> {
        let shapes: [&[u64]; 9] =
            [&[256], &[300], &[5, 400], &[3, 8, 100], &[2, 3, 16, 16], &[70_001], &[2, 65_537], &[131_072], &[1, 257]];
        let mut numbers = Numbers(7);
        let mut cases = Vec::new();
        for shape in shapes {
            let small = shape.iter().product::<u64>() < 5000;
            // Long ones are there for their groups.
            let kinds = if small { 0..5 } else { 1..3 };
            cases.extend(kinds.map(|kind| case(&mut numbers, shape, kind)));
            if small {
                cases.extend((0..5).map(|kind| case(&mut numbers, shape, kind)));
            }
        }
        cases
    }

    /// What the other side says, for each case and profile.
    fn others(profiles: &[Profile], cases: &[Case]) -> Vec<Vec<Figures>> {
        let folder = std::env::temp_dir().join(format!("tilewright-scan-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut data = Vec::new();
        let mut put = |bytes: &[u8]| {
            data.extend_from_slice(bytes);
            json!([data.len() - bytes.len(), bytes.len()])
        };
        let documents: Vec<Value> = cases
            .iter()
            .map(|case| {
                let (native, got) = (put(&case.native), put(&case.got));
                let float64 = case.float64.as_deref().map(&mut put);
                json!({"dtype": case.dtype, "shape": case.shape, "chunk": case.chunk, "native": native, "got": got,
                       "float64": float64})
            })
            .collect();
        std::fs::write(folder.join("cases.json"), json!({"profiles": profiles, "cases": documents}).to_string())
            .unwrap();
        std::fs::write(folder.join("data"), &data).unwrap();
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = std::env::var_os("TILEWRIGHT_PYTHON").map_or(root.join(".venv/bin/python"), PathBuf::from);
        let output = Command::new(python)
            .arg(root.join("python/tests/scan_cases.py"))
            .args([folder.join("cases.json"), folder.join("data")])
            .output()
            .unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    /// The same score, and the same place unless another is as bad.
    fn same_place(a: Option<(f64, usize)>, b: Option<(f64, usize)>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => near(a.0, b.0) && (a.1 == b.1 || a.0.is_infinite() || a.0 == 0.0),
            (a, b) => a == b,
        }
    }

    #[test]
    fn the_figures_made_by_torch_are_those_made_here() {
        let profiles: Vec<Profile> =
            crate::profile_names().map(|name| crate::profile(name).unwrap().unwrap()).collect();
        let cases = cases();
        for (number, (case, others)) in cases.iter().zip(others(&profiles, &cases)).enumerate() {
            let blob = Blob { offset: 0, nbytes: 0 };
            let expected = ExpectedTensor {
                path: "output".into(),
                dtype: case.dtype,
                shape: case.shape.clone(),
                native: blob,
                float64: case.float64.as_ref().map(|_| blob),
                alias: None,
                copy_only: false,
            };
            let bytes = (&case.native[..], case.float64.as_deref(), &case.got[..]);
            for (profile, other) in profiles.iter().zip(others) {
                let groups = Groups::new(&case.shape);
                let mut sources = Sources::new(profile, &expected, bytes.0, bytes.1, bytes.2);
                let overview = Overview::of(&mut sources, groups, profile.rule, Typical::default());
                let scan = Scan::of(&sources, &Limits::new(profile, case.dtype, sources.unit, &overview), groups);
                let place =
                    format!("case {number} {:?} {:?} {}: {scan:?} {other:?}", case.dtype, case.shape, profile.name);
                assert!(other.fit(profile, &expected), "{place}");
                assert_eq!(other.unit, sources.unit, "{place}");
                let counts = |scan: &Scan| {
                    (
                        scan.elements,
                        scan.finite,
                        scan.pattern,
                        scan.extra_nan,
                        scan.extra_inf,
                        scan.both_nan,
                        scan.mismatched,
                    )
                };
                assert_eq!(counts(&scan), counts(&other.scan), "{place}");
                let pairs = [
                    (scan.max_abs, other.scan.max_abs),
                    (scan.max_rel, other.scan.max_rel),
                    (scan.mean_rel(), other.scan.mean_rel()),
                    (scan.squares, other.scan.squares),
                    (scan.golden, other.scan.golden),
                ];
                assert!(pairs.iter().all(|&(a, b)| near(a, b)), "{place}");
                assert!(same_place(scan.worst, other.scan.worst), "{place}");
                // Groups that are equally bad but for the order of a sum may stand for each other.
                let scores = (scan.group.map(|group| group.0), other.scan.group.map(|group| group.0));
                assert!(scores == (None, None) || near(scores.0.unwrap(), scores.1.unwrap()), "{place}");
                let (here, there) =
                    (compare(profile, &expected, bytes, Typical::default()), judge_figures(profile, &expected, &other));
                let words = |why: &Option<String>| why.as_ref().map(|why| why.split(" over ").next().map(String::from));
                assert_eq!(
                    (here.pass, words(&here.why), &here.note),
                    (there.pass, words(&there.why), &there.note),
                    "{place}"
                );
                if scan
                    .worst
                    .is_some_and(|(score, at)| score > 0.0 && other.scan.worst.is_some_and(|(_, other)| at == other))
                {
                    assert_eq!(here.metrics.worst, there.metrics.worst, "{place}");
                }
            }
        }
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let profile = crate::profile("tilewright-1").unwrap().unwrap();
        let blob = Blob { offset: 0, nbytes: 0 };
        let expected = |dtype| ExpectedTensor {
            path: "output".into(),
            dtype,
            shape: vec![2, 300],
            native: blob,
            float64: None,
            alias: None,
            copy_only: false,
        };
        let floats = json!({"elements": 600, "finite": 600, "pattern": 0, "extra_nan": 0, "extra_inf": 0, "both_nan": 0,
            "mismatched": 0, "matched": 0, "max_abs": "0.0", "max_rel": "0.0", "relative": "0.0", "squares": "0.0",
            "golden": "600.0", "worst": ["0.0", 7], "group": ["0.0", 1], "unit": "1.0",
            "element": {"native": [0, 0, 0, 0], "float64": null, "got": [0, 0, 0, 0]}});
        let read = |document: &Value| serde_json::from_value::<Figures>(document.clone());
        assert!(read(&floats).unwrap().fit(&profile, &expected(Dtype::F32)));
        for name in floats.as_object().unwrap().keys().filter(|name| *name != "element") {
            let mut without = floats.clone();
            without.as_object_mut().unwrap().remove(name);
            assert!(read(&without).is_err(), "{name} may be missing");
        }
        let changes = [
            ("elements", json!(599)),
            ("finite", json!(601)),
            ("pattern", json!(1)),
            ("mismatched", json!(601)),
            ("matched", json!(601)),
            ("max_abs", json!("nan")),
            ("max_rel", json!("nan")),
            ("relative", json!("nan")),
            ("squares", json!("nan")),
            ("golden", json!("-1.0")),
            ("worst", json!(["nan", 7])),
            ("worst", json!(["0.0", 600])),
            ("worst", Value::Null),
            ("group", json!(["nan", 1])),
            ("group", Value::Null),
            ("unit", json!("nan")),
            ("unit", json!("0.0")),
            ("element", Value::Null),
            ("element", json!({"native": [0], "float64": null, "got": [0, 0, 0, 0]})),
        ];
        for (name, value) in changes {
            let mut changed = floats.clone();
            changed[name] = value;
            assert!(!read(&changed).unwrap().fit(&profile, &expected(Dtype::F32)), "{name}: {changed}");
        }
        // Where every bit must be equal there is nothing to measure, unless something differs.
        let mut exact = floats.clone();
        for (name, value) in
            [("finite", json!(0)), ("worst", Value::Null), ("group", Value::Null), ("element", Value::Null)]
        {
            exact[name] = value;
        }
        assert!(read(&exact).unwrap().fit(&profile, &expected(Dtype::I32)));
        exact["mismatched"] = json!(1);
        assert!(!read(&exact).unwrap().fit(&profile, &expected(Dtype::I32)), "what differs has a place");
    }
}
