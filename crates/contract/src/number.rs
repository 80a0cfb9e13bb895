use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A Python number. JSON has no infinities and no NaN, so those are the strings
/// `"inf"`, `"-inf"` and `"nan"`; a float without a fraction keeps its `.0`.
///
/// Two are equal if they are the same number of the same kind to the bit: 0.0 and -0.0 are not, NaN and NaN are.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Unsigned(a), Self::Unsigned(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => false,
        }
    }
}

impl Eq for Number {}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Bool(b) => f64::from(u8::from(b)),
            Self::Int(i) => i as f64,
            Self::Unsigned(u) => u as f64,
            Self::Float(f) => f,
        }
    }

    /// The integer value; a float only if it is one exactly. What is above `i64::MAX` keeps its bits: kernels see the same 64
    /// bits either way.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Bool(b) => Some(i64::from(b)),
            Self::Int(i) => Some(i),
            Self::Unsigned(u) => Some(u as i64),
            Self::Float(f) => (f.fract() == 0.0 && f.abs() < 2f64.powi(63)).then_some(f as i64),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(b) => b.fmt(f),
            Self::Int(i) => i.fmt(f),
            Self::Unsigned(u) => u.fmt(f),
            Self::Float(x) => x.fmt(f),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Bool(b) => serializer.serialize_bool(b),
            Self::Int(i) => serializer.serialize_i64(i),
            Self::Unsigned(u) => serializer.serialize_u64(u),
            Self::Float(f) if f.is_nan() => serializer.serialize_str("nan"),
            Self::Float(f) if f == f64::INFINITY => serializer.serialize_str("inf"),
            Self::Float(f) if f == f64::NEG_INFINITY => serializer.serialize_str("-inf"),
            Self::Float(f) => serializer.serialize_f64(f),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Number;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, a boolean, or one of \"nan\", \"inf\", \"-inf\"")
            }
            fn visit_bool<E>(self, v: bool) -> Result<Number, E> {
                Ok(Number::Bool(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Number, E> {
                Ok(Number::Int(v))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Number, E> {
                Ok(i64::try_from(v).map_or(Number::Unsigned(v), Number::Int))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Number, E> {
                Ok(Number::Float(v))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Number, E> {
                match v {
                    "nan" => Ok(Number::Float(f64::NAN)),
                    "inf" => Ok(Number::Float(f64::INFINITY)),
                    "-inf" => Ok(Number::Float(f64::NEG_INFINITY)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A Python number; non-finite floats are the strings nan, inf and -inf.",
            "anyOf": [{"type": "number"}, {"type": "boolean"}, {"enum": ["nan", "inf", "-inf"]}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floats_survive_json(bits: u64) {
            let number = Number::Float(f64::from_bits(bits));
            let back: Number = serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap();
            match back {
                Number::Float(f) if f.is_nan() => prop_assert!(f64::from_bits(bits).is_nan()),
                other => prop_assert_eq!(other, number),
            }
        }
    }

    /// As text they are what a plan says; a kernel's constants may be any of them.
    #[test]
    fn numbers_are_equal_where_their_texts_are() {
        let numbers = [
            Number::Bool(true),
            Number::Int(0),
            Number::Int(1),
            Number::Int(-1),
            Number::Unsigned(u64::MAX),
            Number::Float(0.0),
            Number::Float(-0.0),
            Number::Float(1.0),
            Number::Float(f64::NAN),
            Number::Float(-f64::NAN),
            Number::Float(f64::INFINITY),
        ];
        let text = |number: &Number| serde_json::to_string(number).unwrap();
        for a in &numbers {
            for b in &numbers {
                assert_eq!(a == b, text(a) == text(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn integers_of_64_bits_survive_json_as_what_they_are() {
        for value in [0, 1, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX] {
            let text = value.to_string();
            let number: Number = serde_json::from_str(&text).unwrap();
            assert_eq!((serde_json::to_string(&number).unwrap(), number.to_string()), (text.clone(), text));
            assert_eq!((number.as_i64(), number.as_f64()), (Some(value as i64), value as f64));
            // The same bits are another number.
            assert_eq!(number == Number::Int(value as i64), i64::try_from(value).is_ok());
        }
    }
}
