//! The recording library in front of a driver without a device, called as torch's and Triton's libraries call it.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use tilewright_confirm::{
    Attribute, Axis, ChannelError, Copy, Direction, Launch, Library, Phase, Record, Recording, TensorMap, listen,
};

/// Exit status of a process whose records can no longer be delivered.
const SILENCED: i32 = 88;

fn cc(source: &str, target: &Path, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake").join(source);
    let status = Command::new("cc").args(options).arg(source).arg("-o").arg(target).arg("-ldl").status().unwrap();
    assert!(status.success());
}

/// Runs a scene of `fake/program.c`.
fn play(scene: &str) -> (ExitStatus, Result<Recording, ChannelError>) {
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libcuda.so.999");
    cc("driver.c", &driver, &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]);
    let program = folder.path().join("program");
    cc("program.c", &program, &[]);
    let library = Library::new(&driver).unwrap();
    let (channel, listener) = listen(1 << 20).unwrap();
    let mut command = Command::new(&program);
    let mut child = command.arg(library.path()).arg(scene).stdin(Stdio::from(channel)).spawn().unwrap();
    // The command keeps a copy of the descriptor.
    drop(command);
    (child.wait().unwrap(), listener.finish())
}

#[test]
fn every_way_to_the_driver_is_recorded() {
    let (status, recording) = play("plain");
    assert!(status.success());
    let Recording { records, key } = recording.unwrap();
    let params = |n: u32| {
        let null = 0u64.to_le_bytes().to_vec();
        vec![0x700000u64.to_le_bytes().to_vec(), n.to_le_bytes().to_vec(), null.clone(), null]
    };
    let mut cluster = vec![0; 64];
    (cluster[0], cluster[4], cluster[8]) = (2, 1, 1);
    let mut image = vec![0; 264];
    image[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    image[0x28..0x30].copy_from_slice(&128u64.to_le_bytes());
    image[0x3a..0x3e].copy_from_slice(&[64, 0, 1, 0]);
    image[128 + 0x18..128 + 0x20].copy_from_slice(&64u64.to_le_bytes());
    image[128 + 0x20..128 + 0x28].copy_from_slice(&200u64.to_le_bytes());
    let copy = |direction, to, from, bytes, content| Record::Copy(Copy { direction, to, from, bytes, content });
    let expected = [
        Record::Mark { phase: Phase::Probe },
        Record::Image { number: 0, bytes: image },
        Record::Image { number: 1, bytes: Vec::new() },
        Record::Launch(Launch {
            image: Some(0),
            name: "add".into(),
            grid: [8, 2, 1],
            block: [128, 1, 1],
            shared: 4096,
            stream: 5,
            attributes: vec![Attribute { id: 4, value: cluster }],
            params: Some(params(1000)),
        }),
        // Of another container than a cubin: its parameters are nobody's business.
        Record::Launch(Launch {
            image: Some(1),
            name: "torch_adds".into(),
            grid: [3, 1, 1],
            block: [256, 1, 1],
            shared: 0,
            stream: 0,
            attributes: Vec::new(),
            params: Some(Vec::new()),
        }),
        // A handle that nobody was seen to look up.
        Record::Launch(Launch {
            image: None,
            name: "nobody_looked_it_up".into(),
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            stream: 0,
            attributes: Vec::new(),
            params: Some(Vec::new()),
        }),
        copy(Direction::HostToDevice, 0x1000, 0, 8, key.digest(b"contents")),
        copy(Direction::HostToDevice, 0x2000, 0, 4, key.digest(b"cont")),
        copy(Direction::HostToDevice, 0x3000, 0, 4, key.digest(b"cont")),
        copy(Direction::DeviceToHost, 0, 0x1000, 8, 0),
        copy(Direction::DeviceToDevice, 0x1000, 0x2000, 16, 0),
        copy(Direction::HostToDevice, 0x5000, 0, 8, key.digest(b"contents")),
        Record::Set { to: 0x4000, value: 7, width: 1, count: 32 },
        Record::Set { to: 0x4000, value: 9, width: 4, count: 3 },
        Record::Other { name: "cuGraphLaunch".into() },
        Record::TensorMap(TensorMap {
            encoded: vec![0xa5; 128],
            dtype: 6,
            address: 0x8000,
            interleave: 0,
            swizzle: 3,
            fill: 1,
            axes: vec![
                Axis { extent: 64, stride: 128, block: 16, step: 1 },
                Axis { extent: 32, stride: 0, block: 8, step: 1 },
            ],
        }),
        Record::Mark { phase: Phase::Done },
    ];
    // Addresses of the host are not known beforehand.
    let records: Vec<Record> = records
        .into_iter()
        .map(|record| match record {
            Record::Copy(copy) if copy.direction == Direction::HostToDevice => Record::Copy(Copy { from: 0, ..copy }),
            Record::Copy(copy) if copy.direction == Direction::DeviceToHost => Record::Copy(Copy { to: 0, ..copy }),
            record => record,
        })
        .collect();
    for (at, (record, expected)) in records.iter().zip(&expected).enumerate() {
        assert_eq!(record, expected, "record {at}");
    }
    assert_eq!(records.len(), expected.len());
}

#[test]
fn who_finds_the_descriptor_can_only_break_the_channel() {
    let (_, recording) = play("forge");
    assert!(matches!(recording, Err(ChannelError::Forged(16))), "{recording:?}");
    let (_, recording) = play("cut");
    assert!(matches!(recording, Err(ChannelError::CutOff(16))), "{recording:?}");
    for scene in ["close", "replace"] {
        let (status, recording) = play(scene);
        assert_eq!(status.code(), Some(SILENCED), "{scene}");
        let last = recording.unwrap().records.pop();
        assert!(matches!(last, Some(Record::TensorMap(_))), "{scene}: {last:?}");
    }
    let (status, recording) = play("reopen");
    assert!(status.success() && recording.is_ok());
}
