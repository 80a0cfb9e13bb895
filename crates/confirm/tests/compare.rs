//! Recordings against plans: what a plan describes is confirmed wherever its buffers lie, and any change to it shows.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use proptest::prelude::*;
use proptest::sample::Index;
use tilewright_confirm::{
    Attribute, Buffer, Copy, Difference, Direction, Expected, ExpectedLaunch, ExpectedStep, Key, Launch, Param, Phase,
    Record, Recording, Role, Uploads, Work, compare, mixtures,
};
use tilewright_contract::LaunchOptions;

const KEY: Key = Key([3, 4]);

/// A plan, and what is uploaded for it.
#[derive(Debug, Clone)]
struct Case {
    plan: Expected,
    uploads: Uploads,
}

fn image(kernel: usize) -> Vec<u8> {
    format!("\x7fELF of kernel {kernel}").into_bytes()
}

/// Two inputs, a weight, two buffers of its own of which the last one is returned; any launches and work of torch's.
fn cases() -> impl Strategy<Value = Case> {
    let sizes = prop::collection::vec(1u64..5000, 5);
    let param = prop_oneof![
        (0usize..5, 0u64..64).prop_map(|(buffer, offset)| Param::Pointer { buffer, offset }),
        prop::collection::vec(any::<u8>(), 4).prop_map(Param::Bytes),
        (0i64..50).prop_map(|low| Param::Drawn { low, high: low + 10 }),
        any::<bool>().prop_map(|needed| Param::Scratch { needed }),
    ];
    let launch = (0usize..3, [1u32..100, 1..3, 1..3], 1u32..8, 0u32..4096, prop::collection::vec(param, 1..6));
    let launch = launch.prop_map(|(kernel, grid, warps, shared, params)| {
        ExpectedStep::Launch(ExpectedLaunch {
            kernel,
            entry: format!("kernel_{kernel}"),
            line: 7,
            grid,
            threads: 32 * warps,
            shared,
            options: LaunchOptions::default(),
            params,
        })
    });
    let work = prop_oneof![Just(Work::Move), Just(Work::Fill), Just(Work::Draw)];
    let host = work.prop_map(|work| ExpectedStep::Host { work, line: 9 });
    // The last launch makes the output.
    let last = (0usize..3).prop_map(|kernel| {
        ExpectedStep::Launch(ExpectedLaunch {
            kernel,
            entry: format!("kernel_{kernel}"),
            line: 8,
            grid: [4, 1, 1],
            threads: 128,
            shared: 0,
            options: LaunchOptions::default(),
            params: (0..5).map(|buffer| Param::Pointer { buffer, offset: 0 }).collect(),
        })
    });
    let steps = (prop::collection::vec(prop_oneof![launch, host], 0..6), last);
    (sizes, steps).prop_map(|(sizes, (mut steps, last))| {
        steps.push(last);
        let roles = [Role::Input(0), Role::Input(1), Role::State("weight".into()), Role::Own, Role::Own];
        let buffers = sizes.iter().zip(roles).map(|(&nbytes, role)| Buffer { nbytes, role }).collect();
        let contents = |at: usize| vec![at as u8; sizes[at] as usize];
        Case {
            plan: Expected { buffers, images: (0..3).map(image).collect(), steps, outputs: vec![4] },
            uploads: Uploads { inputs: vec![contents(0), contents(1)], state: vec![("weight".into(), contents(2))] },
        }
    })
}

fn upload(to: u64, bytes: &[u8]) -> Record {
    let content = KEY.digest(bytes);
    Record::Copy(Copy { direction: Direction::HostToDevice, to, from: 1, bytes: bytes.len() as u64, content })
}

fn download(from: u64, bytes: u64) -> Record {
    Record::Copy(Copy { direction: Direction::DeviceToHost, to: 1, from, bytes, content: 0 })
}

/// A kernel of torch's.
fn torch(name: &str) -> Record {
    Record::Launch(Launch {
        image: Some(100),
        name: name.into(),
        grid: [1; 3],
        block: [128, 1, 1],
        shared: 0,
        stream: 0,
        attributes: Vec::new(),
        params: Some(Vec::new()),
    })
}

/// Where the buffers lie.
type Bases = [u64; 5];

const BASES: Bases = [0x10000, 0x20000, 0x30000, 0x40000, 0x50000];

fn play_launch(launch: &ExpectedLaunch, bases: &Bases) -> Record {
    let bytes = |param: &Param| match param {
        Param::Pointer { buffer, offset } => (bases[*buffer] + offset).to_le_bytes().to_vec(),
        Param::Bytes(bytes) => bytes.clone(),
        Param::Drawn { low, .. } => (*low as i32 + 3).to_le_bytes().to_vec(),
        Param::Scratch { needed } => (if *needed { 0x9_0000u64 } else { 0 }).to_le_bytes().to_vec(),
        Param::TensorMap(_) => unreachable!("no case has one"),
    };
    Record::Launch(Launch {
        image: Some(launch.kernel as u32),
        name: launch.entry.clone(),
        grid: launch.grid,
        block: [launch.threads, 1, 1],
        shared: launch.shared,
        stream: 0,
        attributes: Vec::new(),
        params: Some(launch.params.iter().map(bytes).collect()),
    })
}

/// What an honest file does.
fn play(case: &Case, bases: &Bases) -> Vec<Record> {
    let mark = |phase| Record::Mark { phase };
    let mut records = vec![mark(Phase::Probe), upload(0x1, b"probe"), torch("at::native::add"), download(0x1, 5)];
    records.push(mark(Phase::File));
    records.extend((0..3).map(|kernel| Record::Image { number: kernel as u32, bytes: image(kernel) }));
    records.push(Record::Image { number: 100, bytes: Vec::new() });
    records.push(mark(Phase::State));
    records.push(upload(bases[2], &case.uploads.state[0].1));
    // Whatever an autotuner does.
    records.extend([mark(Phase::Warm), torch("at::native::sum"), mark(Phase::Inputs)]);
    records.extend([0, 1].map(|input| upload(bases[input], &case.uploads.inputs[input])));
    records.push(mark(Phase::Forward));
    records.extend(case.plan.steps.iter().map(|step| match step {
        ExpectedStep::Launch(launch) => play_launch(launch, bases),
        ExpectedStep::Host { work: Work::Move, .. } => torch("at::native::direct_copy_kernel_cuda"),
        ExpectedStep::Host { work: Work::Fill, .. } => Record::Set { to: 1, value: 0, width: 4, count: 1 },
        ExpectedStep::Host { work: Work::Draw, .. } => torch("distribution_elementwise_grid_stride_kernel"),
    }));
    records.extend([mark(Phase::Outputs), download(bases[4], case.plan.buffers[4].nbytes), mark(Phase::Done)]);
    records
}

fn check(case: &Case, records: Vec<Record>) -> Result<(), Difference> {
    let recording = Recording { records, key: KEY };
    compare(&recording, std::slice::from_ref(&case.plan), &case.uploads).map(drop)
}

/// Changes to a run; each must show. False where a change does not apply.
type Change = (&'static str, fn(&mut Vec<Record>, &Case, Index) -> bool);

fn forward(records: &[Record]) -> std::ops::Range<usize> {
    let at = |wanted| records.iter().position(|record| *record == Record::Mark { phase: wanted }).unwrap();
    at(Phase::Forward) + 1..at(Phase::Outputs)
}

/// One of the launches of the plan's kernels in forward.
fn pick(records: &mut [Record], index: Index) -> (usize, &mut Launch) {
    let launches: Vec<usize> = forward(records)
        .filter(|&at| matches!(&records[at], Record::Launch(launch) if launch.image != Some(100)))
        .collect();
    let at = launches[index.index(launches.len())];
    match &mut records[at] {
        Record::Launch(launch) => (at, launch),
        _ => unreachable!("picked among launches"),
    }
}

fn insert(records: &mut Vec<Record>, index: Index, record: Record) -> bool {
    let range = forward(records);
    records.insert(range.start + index.index(range.len() + 1), record);
    true
}

const CHANGES: [Change; 26] = [
    ("a launch is left out", |records, _, index| {
        let at = pick(records, index).0;
        records.remove(at);
        true
    }),
    ("a launch is made twice", |records, _, index| {
        let (at, launch) = pick(records, index);
        let copy = launch.clone();
        records.insert(at, Record::Launch(copy));
        true
    }),
    ("another stream, for all launches", |records, _, _| {
        for record in records {
            if let Record::Launch(launch) = record {
                launch.stream += 7;
            }
        }
        true
    }),
    ("another grid", |records, _, index| {
        pick(records, index).1.grid[index.index(3)] += 1;
        true
    }),
    ("other threads", |records, _, index| {
        pick(records, index).1.block[0] += 32;
        true
    }),
    ("other shared memory", |records, _, index| {
        pick(records, index).1.shared += 4;
        true
    }),
    ("another kernel", |records, _, index| {
        pick(records, index).1.name.push('x');
        true
    }),
    ("another image", |records, _, index| {
        let launch = pick(records, index).1;
        launch.image = launch.image.map(|image| (image + 1) % 3);
        true
    }),
    ("an image that nobody saw", |records, _, index| {
        pick(records, index).1.image = None;
        true
    }),
    ("an attribute", |records, _, index| {
        pick(records, index).1.attributes.push(Attribute { id: 4, value: vec![2; 64] });
        true
    }),
    ("an argument less", |records, _, index| pick(records, index).1.params.as_mut().unwrap().pop().is_some()),
    ("arguments that could not be read", |records, _, index| pick(records, index).1.params.take().is_some()),
    ("another argument", |records, _, index| {
        // The last launch has addresses alone, of which the first is an input's.
        let range = forward(records);
        let Record::Launch(launch) = &mut records[range.end - 1] else { return false };
        launch.params.as_mut().unwrap()[index.index(3)][1] ^= 1;
        true
    }),
    ("two arguments in each other's place", |records, _, _| {
        let range = forward(records);
        let Record::Launch(launch) = &mut records[range.end - 1] else { return false };
        launch.params.as_mut().unwrap().swap(0, 1);
        true
    }),
    ("a buffer inside another", |records, case, _| {
        let range = forward(records);
        let Record::Launch(launch) = &mut records[range.end - 1] else { return false };
        let inside = BASES[0] + case.plan.buffers[0].nbytes - 1;
        launch.params.as_mut().unwrap()[4] = inside.to_le_bytes().to_vec();
        true
    }),
    ("torch computes", |records, _, index| insert(records, index, torch("reduce_kernel<sum_functor>"))),
    ("a graph runs", |records, _, index| insert(records, index, Record::Other { name: "cuGraphLaunch".into() })),
    ("data is read", |records, _, index| insert(records, index, download(BASES[0], 4))),
    ("a copy after the last launch", |records, _, _| {
        let end = forward(records).end;
        records.insert(end, torch("direct_copy_kernel_cuda"));
        true
    }),
    ("a fill after the last launch", |records, _, _| {
        let end = forward(records).end;
        records.insert(end, Record::Set { to: BASES[4], value: 0, width: 1, count: 8 });
        true
    }),
    ("another output", |records, case, _| {
        let at = records.len() - 2;
        records[at] = download(BASES[3], case.plan.buffers[4].nbytes);
        true
    }),
    ("an output of another size", |records, case, _| {
        let at = records.len() - 2;
        records[at] = download(BASES[4], case.plan.buffers[4].nbytes + 1);
        true
    }),
    ("torch computes while outputs are read", |records, _, _| {
        let at = records.len() - 2;
        records.insert(at, torch("at::native::add"));
        true
    }),
    ("torch computes while inputs are uploaded", |records, _, _| {
        let at = forward(records).start - 2;
        records.insert(at, torch("at::native::add"));
        true
    }),
    ("a mark twice", |records, _, index| insert(records, index, Record::Mark { phase: Phase::Outputs })),
    ("something after the end", |records, _, _| {
        records.push(torch("at::native::add"));
        true
    }),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_confirmed_wherever_its_buffers_lie(case in cases(), order in Just([0, 1, 2, 3, 4]).prop_shuffle()) {
        prop_assert_eq!(check(&case, play(&case, &BASES)), Ok(()));
        let bases = order.map(|at| BASES[at] + 0x7000_0000);
        prop_assert_eq!(check(&case, play(&case, &bases)), Ok(()));
    }

    #[test]
    fn every_change_shows(case in cases(), index: Index) {
        for (name, change) in CHANGES {
            let mut records = play(&case, &BASES);
            if change(&mut records, &case, index) {
                let outcome = check(&case, records);
                prop_assert!(matches!(outcome, Err(Difference::Other { .. })), "{}: {:?}", name, outcome);
            }
        }
    }

    #[test]
    fn two_launches_in_the_other_order_show_unless_they_are_the_same(case in cases()) {
        let mut records = play(&case, &BASES);
        let range = forward(&records);
        for at in range.clone().skip(1) {
            let plan = |record: &Record| matches!(record, Record::Launch(launch) if launch.image != Some(100));
            if plan(&records[at - 1]) && plan(&records[at]) && records[at - 1] != records[at] {
                records.swap(at - 1, at);
                prop_assert!(check(&case, records).is_err());
                return Ok(());
            }
        }
    }
}

#[test]
fn one_of_several_plans_is_enough_and_the_nearest_explains() {
    let launch = |kernel: usize, grid| {
        ExpectedStep::Launch(ExpectedLaunch {
            kernel,
            entry: format!("kernel_{kernel}"),
            line: 10 + kernel as u32,
            grid: [grid, 1, 1],
            threads: 128,
            shared: 0,
            options: LaunchOptions::default(),
            params: vec![Param::Pointer { buffer: 0, offset: 0 }, Param::Pointer { buffer: 1, offset: 0 }],
        })
    };
    let plan = |steps| Expected {
        buffers: vec![Buffer { nbytes: 64, role: Role::Input(0) }, Buffer { nbytes: 64, role: Role::Own }],
        images: (0..3).map(image).collect(),
        steps,
        outputs: vec![1],
    };
    let uploads = Uploads { inputs: vec![vec![1; 64]], state: Vec::new() };
    let plans = [plan(vec![launch(0, 4), launch(1, 4)]), plan(vec![launch(0, 8), launch(2, 8)])];
    let run = |steps: Vec<ExpectedStep>| {
        let mark = |phase| Record::Mark { phase };
        let mut records =
            vec![mark(Phase::Probe), upload(1, b"probe"), torch("add"), download(1, 5), mark(Phase::File)];
        records.extend((0..3).map(|kernel| Record::Image { number: kernel as u32, bytes: image(kernel) }));
        records.extend([mark(Phase::State), mark(Phase::Warm), mark(Phase::Inputs), upload(0x1000, &[1; 64])]);
        records.push(mark(Phase::Forward));
        for step in &steps {
            let ExpectedStep::Launch(launch) = step else { continue };
            records.push(play_launch(launch, &[0x1000, 0x2000, 0, 0, 0]));
        }
        records.extend([mark(Phase::Outputs), download(0x2000, 64), mark(Phase::Done)]);
        compare(&Recording { records, key: KEY }, &plans, &uploads)
    };
    let confirmed = run(vec![launch(0, 8), launch(2, 8)]).unwrap();
    assert_eq!((confirmed.plan, confirmed.launches, confirmed.placed), (1, 2, 1));
    let Err(Difference::Other { message, line }) = run(vec![launch(0, 8), launch(2, 9)]) else { panic!("confirmed") };
    assert!(message.contains("grid"), "{message}");
    assert_eq!(line, Some(12));
}

#[test]
fn a_recorder_that_sees_nothing_is_no_fault_of_the_file() {
    let case = Case {
        plan: Expected { buffers: Vec::new(), images: Vec::new(), steps: Vec::new(), outputs: Vec::new() },
        uploads: Uploads::default(),
    };
    let marks: Vec<Record> = Phase::ALL.into_iter().map(|phase| Record::Mark { phase }).collect();
    assert!(matches!(check(&case, marks), Err(Difference::Blind(_))));
    assert!(matches!(check(&case, Vec::new()), Err(Difference::Blind(_))));
    // A process that ends in the middle of the file's own code is the file's doing.
    let mut records = vec![Record::Mark { phase: Phase::Probe }, upload(1, b"x"), torch("add"), download(1, 1)];
    records.extend([Phase::File, Phase::State].map(|phase| Record::Mark { phase }));
    assert!(matches!(check(&case, records), Err(Difference::Other { .. })));
}

#[test]
fn choices_of_two_autotuners_mix() {
    let launch = |kernel: usize, grid| {
        ExpectedStep::Launch(ExpectedLaunch {
            kernel,
            entry: "tuned".into(),
            line: 1,
            grid: [grid, 1, 1],
            threads: 128,
            shared: 0,
            options: LaunchOptions::default(),
            params: Vec::new(),
        })
    };
    let plan = |images: [usize; 2], grids: [u32; 2]| Expected {
        buffers: Vec::new(),
        images: images.map(image).to_vec(),
        steps: vec![launch(0, grids[0]), launch(1, grids[1])],
        outputs: Vec::new(),
    };
    let main = plan([0, 1], [10, 20]);
    let (first, second, third) = (plan([2, 1], [11, 20]), plan([0, 3], [10, 21]), plan([0, 4], [10, 22]));
    let mixed = mixtures(&main, &[vec![&first], vec![&second, &third]], 100);
    let seen: Vec<Vec<(u32, Vec<u8>)>> = mixed
        .iter()
        .map(|plan| {
            let of = |step: &ExpectedStep| match step {
                ExpectedStep::Launch(launch) => (launch.grid[0], plan.images[launch.kernel].clone()),
                ExpectedStep::Host { .. } => panic!("there is none"),
            };
            plan.steps.iter().map(of).collect()
        })
        .collect();
    assert_eq!(seen, [[(11, image(2)), (21, image(3))], [(11, image(2)), (22, image(4))]]);
    // Two that change the same launch do not mix.
    assert!(mixtures(&main, &[vec![&first], vec![&plan([5, 1], [12, 20])]], 100).is_empty());
    assert!(mixtures(&main, &[vec![&first], vec![&second, &third]], 2).is_empty());
}
