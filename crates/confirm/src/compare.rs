//! Whether a recording is what a plan says.

use std::collections::{BTreeMap, HashMap};

use crate::channel::Recording;
use crate::expected::{Expected, ExpectedLaunch, ExpectedStep, Param, Role, Work};
use crate::image::same_code;
use crate::places::Places;
use crate::record::{Direction, Launch, Phase, Record, TensorMap};
use crate::torch::{describe, work};

/// What was uploaded, as the trusted side knows it.
#[derive(Debug, Clone, Default)]
pub struct Uploads {
    /// Contents of each input.
    pub inputs: Vec<Vec<u8>>,
    /// Names and contents of the weights, in the order in which they are uploaded.
    pub state: Vec<(String, Vec<u8>)>,
}

/// A recording that shows the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// Which of the plans it is.
    pub plan: usize,
    pub launches: usize,
    /// Calls of torch between them: copies and fills.
    pub others: usize,
    /// Inputs and weights whose place on the device is known by what was uploaded there.
    pub placed: usize,
}

/// A recording that does not show the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The recorder did not see what it must have seen: nothing is known about the file.
    Blind(String),
    /// What the file does is not what the plan says.
    Other {
        message: String,
        /// Line of the launch or copy of the plan, if it is about one.
        line: Option<u32>,
    },
}

impl Difference {
    fn new(message: impl Into<String>) -> Self {
        Self::Other { message: message.into(), line: None }
    }

    fn at(line: u32, message: impl Into<String>) -> Self {
        Self::Other { message: message.into(), line: Some(line) }
    }
}

type Result<T> = std::result::Result<T, Difference>;

/// Compares a recording with plans, one of which it must be: they differ in what an autotuner chose. The difference is
/// the one from the plan that it is nearest to.
pub fn compare(recording: &Recording, plans: &[Expected], uploads: &Uploads) -> Result<Confirmed> {
    let phases = phases(&recording.records)?;
    probe(&phases)?;
    let placed = Placed::new(recording, &phases, uploads);
    let images = images(&recording.records);
    quiet(
        &phases,
        &[Phase::Inputs],
        |record| matches!(record, Record::Copy(copy) if copy.direction == Direction::HostToDevice),
    )?;
    let mut furthest = (0, Difference::new("there is no plan"));
    for (number, plan) in plans.iter().enumerate() {
        let mut walk = Walk { plan, images: &images, maps: Vec::new(), at: 0, others: 0, seen: HashMap::new() };
        let mut places = placed.places(plan);
        let outcome = walk
            .forward(phase(&phases, Phase::Forward), &mut places)
            .and_then(|()| outputs(plan, phase(&phases, Phase::Outputs), &mut places));
        match outcome {
            Ok(()) => {
                let launches = plan.steps.iter().filter(|step| matches!(step, ExpectedStep::Launch(_))).count();
                return Ok(Confirmed { plan: number, launches, others: walk.others, placed: placed.count() });
            }
            Err(difference) if number == 0 || walk.at > furthest.0 => furthest = (walk.at, difference),
            Err(_) => {}
        }
    }
    Err(furthest.1)
}

/// The records of each phase.
type Phases<'a> = BTreeMap<Phase, Vec<&'a Record>>;

fn phase<'a, 'b>(phases: &'b Phases<'a>, wanted: Phase) -> &'b [&'a Record] {
    phases.get(&wanted).map_or(&[], Vec::as_slice)
}

/// Each phase must come once, in order.
fn phases(records: &[Record]) -> Result<Phases<'_>> {
    let mut phases = Phases::new();
    let mut current = None;
    let mut wanted = Phase::ALL.into_iter();
    for record in records {
        if let Record::Mark { phase } = record {
            if wanted.next() != Some(*phase) {
                return Err(Difference::new(format!("the marks of the run are out of order {}", phase.name())));
            }
            current = Some(*phase);
            phases.insert(*phase, Vec::new());
        } else if let Some(of) = current.and_then(|current| phases.get_mut(&current)) {
            of.push(record);
        }
    }
    match wanted.next() {
        None if phase(&phases, Phase::Done).is_empty() => Ok(phases),
        None => Err(Difference::new("the process went on after its end")),
        Some(Phase::Probe | Phase::File) => Err(Difference::Blind("the recorder's own marks are missing".into())),
        Some(missing) => Err(Difference::new(format!("the run ended early: nothing is known {}", missing.name()))),
    }
}

/// Torch uploads something, adds to it and downloads it: all three must have been seen.
fn probe(phases: &Phases<'_>) -> Result<()> {
    let seen = phase(phases, Phase::Probe);
    let copied = |way| seen.iter().any(|record| matches!(record, Record::Copy(copy) if copy.direction == way));
    let launched = seen.iter().any(|record| matches!(record, Record::Launch(launch) if !launch.name.is_empty()));
    let missing = match (copied(Direction::HostToDevice), launched, copied(Direction::DeviceToHost)) {
        (true, true, true) => return Ok(()),
        (false, _, _) => "uploads",
        (_, false, _) => "launches of torch, with their names",
        (_, _, false) => "downloads",
    };
    Err(Difference::Blind(format!("it does not see {missing} on this machine")))
}

/// Nothing but what is allowed may happen in these phases.
fn quiet(phases: &Phases<'_>, of: &[Phase], allowed: impl Fn(&Record) -> bool) -> Result<()> {
    for &name in of {
        let loud =
            |record: &&&Record| !matches!(record, Record::Image { .. } | Record::TensorMap(_)) && !allowed(record);
        if let Some(record) = phase(phases, name).iter().find(loud) {
            return Err(Difference::new(format!("{} {}", describe(record), name.name())));
        }
    }
    Ok(())
}

fn images(records: &[Record]) -> HashMap<u32, &[u8]> {
    let mut images = HashMap::new();
    for record in records {
        if let Record::Image { number, bytes } = record {
            images.insert(*number, bytes.as_slice());
        }
    }
    images
}

/// Where inputs and weights are, by the contents that were uploaded there.
struct Placed {
    inputs: Vec<Option<u64>>,
    state: BTreeMap<String, u64>,
}

impl Placed {
    fn new(recording: &Recording, phases: &Phases<'_>, uploads: &Uploads) -> Self {
        let find = |phase_name, contents: &mut dyn Iterator<Item = &Vec<u8>>| -> Vec<Option<u64>> {
            let mut copies = phase(phases, phase_name).iter().filter_map(|record| match record {
                Record::Copy(copy) if copy.direction == Direction::HostToDevice => Some(copy),
                _ => None,
            });
            let mut place = |bytes: &Vec<u8>| {
                let (length, content) = (bytes.len() as u64, recording.key.digest(bytes));
                // Looked for from the last one on; one that is not found stays unknown.
                let mut ahead = copies.clone();
                let found = ahead.find(|copy| copy.bytes == length && copy.content == content)?;
                copies = ahead;
                Some(found.to)
            };
            contents.map(|bytes| if bytes.is_empty() { None } else { place(bytes) }).collect()
        };
        let inputs = find(Phase::Inputs, &mut uploads.inputs.iter());
        let state = find(Phase::State, &mut uploads.state.iter().map(|(_, bytes)| bytes));
        let state = uploads.state.iter().zip(state);
        Self { inputs, state: state.filter_map(|((name, _), place)| Some((name.clone(), place?))).collect() }
    }

    fn count(&self) -> usize {
        self.inputs.iter().flatten().count() + self.state.len()
    }

    fn places(&self, plan: &Expected) -> Places {
        let known = plan.buffers.iter().map(|buffer| match &buffer.role {
            Role::Input(index) => self.inputs.get(*index).copied().flatten(),
            Role::State(name) => self.state.get(name).copied(),
            Role::Own => None,
        });
        Places::new(plan, known.collect())
    }
}

/// Outputs are downloaded whole, from where the plan has them.
fn outputs(plan: &Expected, records: &[&Record], places: &mut Places) -> Result<()> {
    let mut records = records.iter().filter(|record| !matches!(record, Record::Image { .. } | Record::TensorMap(_)));
    for (number, &buffer) in plan.outputs.iter().filter(|&&buffer| plan.buffers[buffer].nbytes > 0).enumerate() {
        let Some(record) = records.next() else {
            return Err(Difference::new(format!("output {number} is not on the device")));
        };
        let Record::Copy(copy) = record else {
            return Err(Difference::new(format!("{} {}", describe(record), Phase::Outputs.name())));
        };
        let nbytes = plan.buffers[buffer].nbytes;
        if copy.direction != Direction::DeviceToHost || copy.bytes != nbytes {
            let message = format!("output {number} has {} bytes of memory, in the plan {nbytes}", copy.bytes);
            return Err(Difference::new(message));
        }
        places
            .bind(buffer, copy.from)
            .map_err(|why| Difference::new(format!("what forward returns as output {number} {why}")))?;
    }
    match records.next() {
        Some(record) => Err(Difference::new(format!("{} {}", describe(record), Phase::Outputs.name()))),
        None => Ok(()),
    }
}

/// One comparison of forward with a plan.
struct Walk<'a> {
    plan: &'a Expected,
    images: &'a HashMap<u32, &'a [u8]>,
    /// Tensor maps that were encoded so far.
    maps: Vec<&'a TensorMap>,
    /// Launches that were found.
    at: usize,
    /// Calls of torch that were found.
    others: usize,
    /// Whether an image is that of a kernel of the plan.
    seen: HashMap<(u32, usize), std::result::Result<(), String>>,
}

/// What torch's current stream is as long as the file does not change it, which the plan knows nothing about.
const DEFAULT_STREAM: u64 = 0;

/// The host work between two launches of a plan, and the launch that ends it.
struct Segment<'a> {
    host: Vec<(Work, u32)>,
    launch: Option<&'a ExpectedLaunch>,
}

fn segments(plan: &Expected) -> Vec<Segment<'_>> {
    let (mut segments, mut host) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        match step {
            ExpectedStep::Host { work, line } => host.push((*work, *line)),
            ExpectedStep::Launch(launch) => {
                segments.push(Segment { host: std::mem::take(&mut host), launch: Some(launch) });
            }
        }
    }
    segments.push(Segment { host, launch: None });
    segments
}

impl<'a> Walk<'a> {
    fn forward(&mut self, records: &[&'a Record], places: &mut Places) -> Result<()> {
        let mut records = records.iter().copied().peekable();
        for segment in segments(self.plan) {
            let mut host = Vec::new();
            let launch = loop {
                match records.next() {
                    None => break None,
                    Some(Record::TensorMap(map)) => self.maps.push(map),
                    Some(Record::Image { .. } | Record::Mark { .. }) => {}
                    Some(Record::Launch(launch)) if self.is_cubin(launch) => break Some(launch),
                    Some(record) => host.push(record),
                }
            };
            self.host(&segment, &host)?;
            match (launch, segment.launch) {
                (None, None) => {}
                (Some(launch), Some(expected)) => {
                    self.launch(launch, expected, places)?;
                    if launch.stream != DEFAULT_STREAM {
                        return Err(Difference::at(expected.line, "the launch goes to a stream of its own"));
                    }
                    self.at += 1;
                }
                (None, Some(expected)) => {
                    let message = format!("{} is not launched", expected.entry);
                    return Err(Difference::at(expected.line, message));
                }
                (Some(launch), None) => {
                    return Err(Difference::new(format!("a launch of {} more than in the plan", launch.name)));
                }
            }
        }
        Ok(())
    }

    /// Whether a launch is of a kernel that was loaded as a cubin, as Triton does; torch's own come in other containers.
    fn is_cubin(&self, launch: &Launch) -> bool {
        launch.image.and_then(|image| self.images.get(&image)).is_some_and(|bytes| !bytes.is_empty())
    }

    /// Torch does no more, and nothing else, than the plan says for this place.
    fn host(&mut self, segment: &Segment<'_>, records: &[&Record]) -> Result<()> {
        let count = |wanted| segment.host.iter().filter(|(work, _)| *work == wanted).count();
        let mut left: BTreeMap<Work, usize> =
            [Work::Move, Work::Fill, Work::Draw].map(|work| (work, count(work))).into();
        for record in records {
            // An upload may be what a literal consists of.
            let works = match (work(record), record) {
                (Some(Work::Move), Record::Copy(_)) => vec![Work::Move, Work::Fill],
                (found, _) => found.into_iter().collect(),
            };
            let slot = works.iter().find(|work| left.get(work).is_some_and(|&left| left > 0));
            match slot.and_then(|work| left.get_mut(work)) {
                Some(left) => *left -= 1,
                None => {
                    let message = format!("{} in forward, which the plan does not have", describe(record));
                    let line = segment.launch.map(|launch| launch.line);
                    return Err(Difference::Other { message, line });
                }
            }
        }
        self.others += records.len();
        Ok(())
    }

    fn launch(&mut self, launch: &Launch, expected: &ExpectedLaunch, places: &mut Places) -> Result<()> {
        let differs = |what: String| Difference::at(expected.line, format!("the launch of {}: {what}", expected.entry));
        if launch.name != expected.entry {
            return Err(differs(format!("{} is launched in its place", launch.name)));
        }
        self.image(launch, expected).map_err(|why| differs(format!("its machine code is another: {why}")))?;
        if launch.grid != expected.grid {
            return Err(differs(format!("its grid is {:?}, in the plan {:?}", launch.grid, expected.grid)));
        }
        if launch.block != [expected.threads, 1, 1] {
            return Err(differs(format!("it has {:?} threads, in the plan {}", launch.block, expected.threads)));
        }
        if launch.shared != expected.shared {
            let message = format!("it has {} bytes of shared memory, in the plan {}", launch.shared, expected.shared);
            return Err(differs(message));
        }
        attributes(launch, expected).map_err(differs)?;
        self.params(launch, expected, places).map_err(differs)
    }

    fn image(&mut self, launch: &Launch, expected: &ExpectedLaunch) -> std::result::Result<(), String> {
        let Some(image) = launch.image else { return Err("where it came from was not seen".into()) };
        let bytes = self.images.get(&image).copied().unwrap_or_default();
        let compare = || {
            let planned = self.plan.images.get(expected.kernel).map_or(&[][..], Vec::as_slice);
            same_code(bytes, planned).map_err(|difference| difference.to_string())
        };
        self.seen.entry((image, expected.kernel)).or_insert_with(compare).clone()
    }

    fn params(
        &self,
        launch: &Launch,
        expected: &ExpectedLaunch,
        places: &mut Places,
    ) -> std::result::Result<(), String> {
        let Some(params) = &launch.params else { return Err("its arguments could not be read".into()) };
        if params.len() != expected.params.len() {
            return Err(format!("it gets {} parameters, in the plan {}", params.len(), expected.params.len()));
        }
        for (index, (bytes, param)) in params.iter().zip(&expected.params).enumerate() {
            self.param(bytes, param, places).map_err(|why| format!("argument {index} {why}"))?;
        }
        Ok(())
    }

    fn param(&self, bytes: &[u8], param: &Param, places: &mut Places) -> std::result::Result<(), String> {
        match param {
            Param::Bytes(wanted) if bytes == wanted => Ok(()),
            Param::Bytes(wanted) => Err(format!("is {bytes:02x?}, in the plan {wanted:02x?} (bytes)")),
            Param::Pointer { buffer, offset } => places.bind_pointer(*buffer, address(bytes)?, *offset),
            Param::Drawn { low, high } => match integer(bytes) {
                Some(drawn) if (*low..*high).contains(&drawn) => Ok(()),
                drawn => Err(format!("is {drawn:?}, in the plan drawn from {low} to {high}")),
            },
            Param::Scratch { needed } => match (address(bytes)?, needed) {
                (0, false) | (1.., true) => Ok(()),
                (0, true) => Err("is null, in the plan scratch memory".into()),
                (_, false) => Err("is an address, in the plan null".into()),
            },
            Param::TensorMap(wanted) => {
                let map = self.maps.iter().rev().find(|map| map.encoded == bytes);
                let map = map.ok_or("is a tensor map that was not encoded in this call")?;
                crate::descriptor::compare(map, wanted)?;
                places.bind_pointer(wanted.buffer, map.address, wanted.view.offset)
            }
        }
    }
}

/// The attributes that Triton's launcher sets, and no others.
fn attributes(launch: &Launch, expected: &ExpectedLaunch) -> std::result::Result<(), String> {
    // CUlaunchAttributeID
    const COOPERATIVE: u32 = 2;
    const CLUSTER: u32 = 4;
    const CLUSTER_POLICY: u32 = 5;
    const PROGRAMMATIC: u32 = 6;
    let word = |value: &[u8], at: usize| {
        value.get(4 * at..4 * at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let (mut cluster, mut cooperative, mut programmatic) = ([1; 3], false, false);
    for attribute in &launch.attributes {
        match attribute.id {
            COOPERATIVE => cooperative = word(&attribute.value, 0) != 0,
            CLUSTER => cluster = [0, 1, 2].map(|at| word(&attribute.value, at)),
            PROGRAMMATIC => programmatic = word(&attribute.value, 0) != 0,
            CLUSTER_POLICY => {}
            other => return Err(format!("it sets the launch attribute {other}")),
        }
    }
    let options = &expected.options;
    let pairs = [
        ("cluster", cluster != [options.num_ctas.max(1), 1, 1]),
        ("cooperative grid", cooperative != options.launch_cooperative_grid),
        ("programmatic launch", programmatic != options.launch_pdl),
    ];
    match pairs.iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(format!("its {what} is not as in the plan")),
        None => Ok(()),
    }
}

fn address(bytes: &[u8]) -> std::result::Result<u64, String> {
    let bytes = bytes.try_into().map_err(|_| format!("has {} bytes, in the plan it is an address", bytes.len()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A little-endian integer with its sign.
fn integer(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        4 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        8 => i64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}
