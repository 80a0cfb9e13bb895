//! Rare integer functions of libdevice, on lanes of raw bits.

use super::LaneFn;

fn at(lanes: &[u64], index: usize) -> u32 {
    lanes.get(index).copied().unwrap_or_default() as u32
}

fn signed(lanes: &[u64], index: usize) -> i64 {
    i64::from(at(lanes, index) as i32)
}

fn unsigned(lanes: &[u64], index: usize) -> u64 {
    u64::from(at(lanes, index))
}

/// The low 24 bits of an integer, with the sign of the highest.
fn signed_24(lanes: &[u64], index: usize) -> i64 {
    i64::from((at(lanes, index) << 8) as i32 >> 8)
}

/// Four bytes of eight, as `prmt.b32` without a mode picks them: bit 3 of a selector repeats the byte's sign.
pub(crate) fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(a) | u64::from(b) << 32;
    let pick = |at: u32| {
        let choice = selector >> (4 * at) & 15;
        let byte = (bytes >> (8 * (choice & 7))) as u8;
        if choice & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
}

/// A function by its name without `__nv_`.
pub(crate) fn by_name(name: &str) -> Option<LaneFn> {
    Some(match name {
        // `__byte_perm` looks at three bits of each selector.
        "byte_perm" => |v| u64::from(permute(at(v, 0), at(v, 1), at(v, 2) & 0x7777)),
        "mul24" => |v| (signed_24(v, 0) * signed_24(v, 1)) as u64,
        "umul24" => |v| (unsigned(v, 0) & 0xff_ffff) * (unsigned(v, 1) & 0xff_ffff),
        "sad" => |v| (signed(v, 0) - signed(v, 1)).unsigned_abs() + unsigned(v, 2),
        "usad" => |v| unsigned(v, 0).abs_diff(unsigned(v, 1)) + unsigned(v, 2),
        "hadd" => |v| ((signed(v, 0) + signed(v, 1)) >> 1) as u64,
        "rhadd" => |v| ((signed(v, 0) + signed(v, 1) + 1) >> 1) as u64,
        "uhadd" => |v| (unsigned(v, 0) + unsigned(v, 1)) >> 1,
        "urhadd" => |v| (unsigned(v, 0) + unsigned(v, 1) + 1) >> 1,
        "hiloint2double" => |v| unsigned(v, 0) << 32 | unsigned(v, 1),
        "double2loint" => |v| v.first().copied().unwrap_or_default(),
        "double2hiint" => |v| v.first().copied().unwrap_or_default() >> 32,
        // The upper half of a double's reciprocal, the lower one zero.
        "rcp64h" => |v| {
            let x = f64::from_bits(v.first().copied().unwrap_or_default());
            (1.0 / x).to_bits() & 0xffff_ffff_0000_0000
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, args: &[i32]) -> i32 {
        let lanes: Vec<u64> = args.iter().map(|&x| i64::from(x) as u64).collect();
        by_name(name).expect("a name")(&lanes) as i32
    }

    #[test]
    fn examples() {
        assert_eq!(call("byte_perm", &[0x3322_1100, 0x7766_5544, 0x7531]), 0x7755_3311);
        assert_eq!(permute(0x8000_007f, 0, 0x000b), 0x7f7f_7fff);
        assert_eq!(call("mul24", &[0x00ff_ffff, 5]), -5);
        assert_eq!(call("umul24", &[-1, 2]), 0x01ff_fffe);
        assert_eq!(call("sad", &[-5, 7, 100]), 112);
        assert_eq!(call("usad", &[-1, 1, 1]), -1);
        assert_eq!(call("hadd", &[i32::MAX, i32::MAX]), i32::MAX);
        assert_eq!(call("rhadd", &[-3, 0]), -1);
        assert_eq!(call("hadd", &[-3, 0]), -2);
        assert_eq!(call("uhadd", &[-1, -1]), -1);
        assert_eq!(call("double2hiint", &[]), 0);
        let one = by_name("hiloint2double").expect("a name")(&[0x3ff0_0000, 0]);
        assert_eq!(f64::from_bits(one), 1.0);
    }
}
