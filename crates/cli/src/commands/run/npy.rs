//! NumPy's `.npy` files as contiguous little-endian bytes.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

use camino::Utf8Path;
use npyz::{DType, NpyHeader, Order, TypeStr, WriteOptions, WriterBuilder};
use tilewright_contract::Dtype;

/// An array of a file, in row-major order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn read(path: &Utf8Path) -> Result<Array, String> {
    let failed = |error: std::io::Error| format!("failed to read {path}: {error}");
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let header = NpyHeader::from_reader(&mut file).map_err(failed)?;
    let dtype = dtype(&header.dtype()).ok_or_else(|| {
        let descr = header.dtype().descr();
        format!("{path} holds elements of type {descr}: save it as little-endian floats, integers or booleans")
    })?;
    if header.order() != Order::C && header.shape().len() > 1 {
        return Err(format!("{path} is in Fortran order: save np.ascontiguousarray(x)"));
    }
    let shape = header.shape().to_vec();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let wanted = shape.iter().try_fold(dtype.size(), |size, &extent| size.checked_mul(extent));
    if wanted != Some(bytes.len() as u64) {
        return Err(format!("{path} holds {} bytes of data, which is no array of shape {shape:?}", bytes.len()));
    }
    Ok(Array { dtype, shape, bytes })
}

/// Writes an array. Types that NumPy lacks are written as float32, which holds each of their values.
pub(super) fn write(path: &Utf8Path, array: &Array) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("failed to write {path}: {error}");
    let widened;
    let (name, bytes) = match type_name(array.dtype) {
        Some(name) => (name, &array.bytes),
        None => {
            let mut values = Vec::new();
            tilewright_judge::decode(array.dtype, &array.bytes, &mut values);
            widened = values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
            ("<f4", &widened)
        }
    };
    let ty: TypeStr = name.parse().map_err(|error| format!("failed to name the type {name}: {error}"))?;
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let options = WriteOptions::new_header_only().dtype(DType::new_scalar(ty)).shape(&array.shape).writer(file);
    let mut file = options.write_header_only().map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)
}

const TYPES: [(&str, Dtype); 12] = [
    ("|b1", Dtype::Bool),
    ("|u1", Dtype::U8),
    ("<u2", Dtype::U16),
    ("<u4", Dtype::U32),
    ("<u8", Dtype::U64),
    ("|i1", Dtype::I8),
    ("<i2", Dtype::I16),
    ("<i4", Dtype::I32),
    ("<i8", Dtype::I64),
    ("<f2", Dtype::F16),
    ("<f4", Dtype::F32),
    ("<f8", Dtype::F64),
];

fn dtype(found: &DType) -> Option<Dtype> {
    let DType::Plain(ty) = found else { return None };
    let name = ty.to_string();
    TYPES.iter().find(|(known, _)| *known == name).map(|&(_, dtype)| dtype)
}

fn type_name(dtype: Dtype) -> Option<&'static str> {
    TYPES.iter().find(|(_, known)| *known == dtype).map(|&(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, camino::Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("x.npy")).unwrap();
        (folder, path)
    }

    #[test]
    fn every_type_comes_back_and_the_others_widen() {
        let (_folder, path) = folder();
        for (_, dtype) in TYPES {
            let bytes = (0..6 * dtype.size() as u8).map(|byte| byte % 2).collect();
            let array = Array { dtype, shape: vec![2, 3], bytes };
            write(&path, &array).unwrap();
            assert_eq!(read(&path).unwrap(), array);
        }
        let halves = Array { dtype: Dtype::Bf16, shape: vec![2], bytes: vec![0x80, 0x3f, 0, 0xc0] };
        write(&path, &halves).unwrap();
        let wide: Vec<u8> = [1f32, -2.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(read(&path).unwrap(), Array { dtype: Dtype::F32, shape: vec![2], bytes: wide });
    }

    #[test]
    fn damaged_and_foreign_files_are_named() {
        let (_folder, path) = folder();
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path).unwrap_err()
        };
        assert!(told(b"no numpy").contains("failed to read"));
        write(&path, &Array { dtype: Dtype::F32, shape: vec![2], bytes: vec![0; 8] }).unwrap();
        let good = std::fs::read(&path).unwrap();
        assert!(told(&good[..good.len() - 1]).contains("holds 7 bytes"));
        let text = String::from_utf8_lossy(&good).replace("<f4", ">f4");
        let big = [&good[..10], &text.as_bytes()[text.find('{').unwrap()..]].concat();
        assert!(told(&big).contains("little-endian"), "{}", told(&big));
    }
}
