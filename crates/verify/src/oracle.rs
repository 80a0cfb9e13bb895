//! A problem's data under one rule for its weights, and whoever holds them.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use elsa::sync::FrozenMap;
use tilewright_contract::{Blob, OracleData, VerdictKind};
use tilewright_screen::Calls;
use tilewright_stage::{DataFile, OracleRequest, Resident, StageError};

use crate::draft::Stop;
use crate::figures;
use crate::lane::Lane;
use crate::pipeline::Verifier;
use crate::shared::BY_BYTES;

/// Oracle data with the bytes that its blobs refer to.
pub(crate) struct OracleSet {
    pub(crate) data: OracleData,
    /// Holds the bytes: a file, or the process that made them on a GPU.
    pub(crate) file: DataFile,
    /// Those that somebody asked for.
    read: FrozenMap<(u64, u64), Vec<u8>>,
    /// Their bytes.
    copied: AtomicU64,
    /// How the data were made, and who holds them on each GPU: processes that make the same, each for itself.
    residents: Option<(OracleRequest, Vec<Slot>)>,
}

/// Who holds the data on one GPU.
type Slot = Mutex<Option<Arc<Resident>>>;

impl OracleSet {
    /// Data in a file. A defect of the problem is an error.
    pub(crate) fn in_file(data: OracleData, file: DataFile) -> Result<Self, Stop> {
        let set = Self { data: sound(data)?, file, read: FrozenMap::new(), copied: AtomicU64::new(0), residents: None };
        set.check(set.blobs())?;
        Ok(set)
    }

    /// Data that a process holds on one of the GPUs. A defect of the problem is an error.
    pub(crate) fn resident(
        data: OracleData,
        resident: Resident,
        request: OracleRequest,
        (lanes, on): (&[Lane], &Lane),
    ) -> Result<Self, Stop> {
        let data = sound(data)?;
        let resident = Arc::new(resident);
        let slots =
            lanes.iter().map(|lane| Mutex::new((lane.index == on.index).then(|| Arc::clone(&resident)))).collect();
        Ok(Self {
            data,
            file: DataFile::of(resident),
            read: FrozenMap::new(),
            copied: AtomicU64::new(0),
            residents: Some((request, slots)),
        })
    }

    /// What a call of a candidate runs.
    pub(crate) fn calls(&self) -> Calls {
        let asks = self.data.cases.iter().any(|case| case.signature.gradients.is_some());
        if asks { Calls::ForwardAndBackward } else { Calls::Forward }
    }

    /// The bytes of a blob, fetched when first asked for.
    pub(crate) fn bytes(&self, blob: Blob) -> Result<&[u8], Stop> {
        let key = (blob.offset, blob.nbytes);
        if let Some(bytes) = self.read.get(&key) {
            return Ok(bytes);
        }
        let bytes = self.file.read(blob);
        let lost = |error| Stop::infrastructure(format!("failed to read the oracle's data: {error}"));
        Ok(self.keep(key, bytes.map_err(lost)?))
    }

    /// Bytes that stay: the first of those that several have read at the same time. Only they count.
    fn keep(&self, key: (u64, u64), bytes: Vec<u8>) -> &[u8] {
        self.read.insert_with(key, || {
            self.copied.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            bytes
        })
    }

    /// Bytes of blobs that somebody asked for: they stay in our memory.
    pub(crate) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self, mut blobs: impl Iterator<Item = Blob>) -> Result<(), Stop> {
        if blobs.all(|blob| self.file.holds(blob)) {
            return Ok(());
        }
        Err(Stop::infrastructure("the oracle names data that it did not write"))
    }

    /// Whether its data are too many to go through the host's memory.
    pub(crate) fn is_large(&self) -> bool {
        self.blobs().map(|blob| blob.nbytes).max().unwrap_or_default() > BY_BYTES / 4
    }

    /// Writes every blob to its place in a file.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        self.blobs().try_for_each(|blob| file.write_all_at(&self.file.read(blob)?, blob.offset))
    }

    /// Who holds the data on a GPU, if somebody does.
    pub(crate) fn held(&self, lane: &Lane) -> Option<Arc<Resident>> {
        let slot = self.residents.as_ref()?.1.get(lane.index)?;
        let held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().filter(|resident| !resident.is_lost()).cloned()
    }

    /// The same, after having the data made there if need be, or anew where their process has ended: not during a turn.
    pub(crate) fn hold(&self, verifier: &Verifier, lane: &Lane) -> Result<Option<Arc<Resident>>, StageError> {
        let held = self.held(lane);
        let Some((request, slots)) = self.residents.as_ref().filter(|_| held.is_none()) else { return Ok(held) };
        let Some(slot) = slots.get(lane.index) else { return Ok(None) };
        let request = OracleRequest { device: lane.to_string(), ..request.clone() };
        let profiles = &verifier.options.profiles;
        // First the GPU, then the slot: who has the GPU to himself looks into the slot too.
        lane.beside(|| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let data = match &*slot {
                Some(resident) => resident.revive(&verifier.stage, &request, profiles)?,
                None => {
                    let (data, resident) = verifier.stage.resident(&request, profiles)?;
                    *slot = Some(Arc::new(resident));
                    Some(data)
                }
            };
            if data.as_ref().is_some_and(|data| data.cases != self.data.cases) {
                slot.iter().for_each(|resident| resident.close());
                let why = format!("the oracle makes other data on {lane}");
                return Err(StageError::Malformed { kind: "resident", why });
            }
            if let Some((data, resident)) = data.zip(slot.as_ref()) {
                figures::equip(resident, &verifier.figures(&data));
            }
            Ok(slot.clone())
        })
    }

    /// Processes that have ended which held the data on a GPU.
    pub(crate) fn losses(&self) -> u64 {
        let slots = self.residents.iter().flat_map(|(_, slots)| slots);
        let held = slots.filter_map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).clone());
        held.map(|resident| resident.losses()).sum()
    }

    /// Has the data made anew on each GPU where they were lost.
    pub(crate) fn revive(&self, verifier: &Verifier) -> Result<(), StageError> {
        let lost = verifier.lanes.iter().filter(|lane| self.has_lost(lane));
        lost.map(|lane| self.hold(verifier, lane)).try_for_each(|held| held.map(drop))
    }

    fn has_lost(&self, lane: &Lane) -> bool {
        let slot = self.residents.as_ref().and_then(|(_, slots)| slots.get(lane.index));
        let held = slot.map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner));
        held.is_some_and(|held| held.as_ref().is_some_and(|resident| resident.is_lost()))
    }

    fn blobs(&self) -> impl Iterator<Item = Blob> {
        let trials = self.data.cases.iter().flat_map(|case| &case.trials);
        trials.flat_map(|trial| {
            let calls = trial.calls.iter().flat_map(|call| {
                let tensors = call.expected.tensors.iter().flat_map(|tensor| [Some(tensor.native), tensor.float64]);
                call.inputs.iter().copied().chain(tensors.flatten())
            });
            trial.state.iter().copied().chain(calls)
        })
    }
}

fn sound(data: OracleData) -> Result<OracleData, Stop> {
    match &data.defect {
        Some(defect) => Err(Stop::new(VerdictKind::ProblemDefect, "problem", defect.clone())),
        None => Ok(data),
    }
}
