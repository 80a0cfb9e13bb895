//! The profiles that ship with Tilewright, from `profiles/`.

use tilewright_contract::{Profile, ProfileError};

const SHIPPED: [(&str, &str); 8] = [
    ("tilewright-1", include_str!("../../../profiles/tilewright-1.toml")),
    ("kernelbench", include_str!("../../../profiles/kernelbench.toml")),
    ("kernelbench-v0", include_str!("../../../profiles/kernelbench-v0.toml")),
    ("ascend-v2-b", include_str!("../../../profiles/ascend-v2-b.toml")),
    ("ascend-v2-c", include_str!("../../../profiles/ascend-v2-c.toml")),
    ("ascend-v2-d", include_str!("../../../profiles/ascend-v2-d.toml")),
    ("ascend-v2-e", include_str!("../../../profiles/ascend-v2-e.toml")),
    ("operator-0.1pct", include_str!("../../../profiles/operator-0.1pct.toml")),
];

/// The profile that decides where none is named.
pub const DEFAULT_PROFILE: &str = "tilewright-1";

/// Names of the shipped profiles, the default first.
pub fn profile_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// A shipped profile by name; `None` for an unknown name.
pub fn profile(name: &str) -> Option<Result<Profile, ProfileError>> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| Profile::parse(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_parses_under_its_own_name() {
        for name in profile_names() {
            let profile = profile(name).unwrap().unwrap();
            assert_eq!(profile.name, name);
            assert!(profile.version >= 1 && !profile.source.is_empty());
            assert!(["ieee", "tf32"].contains(&profile.compute.as_str()));
        }
        assert_eq!(profile_names().next(), Some(DEFAULT_PROFILE));
        assert!(profile("nonsense").is_none());
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let text = include_str!("../../../profiles/kernelbench.toml").replace("rtol", "rtoll");
        assert!(Profile::parse(&text).is_err());
        // A number written as a string is refused too.
        let text = include_str!("../../../profiles/kernelbench.toml").replace("rtol = 1e-4", "rtol = \"1e-4\"");
        assert!(Profile::parse(&text).is_err());
    }
}
