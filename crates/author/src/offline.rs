//! The author that needs no model: it takes the problem apart with the compiler and writes kernels by rule.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tilewright_stage::{Stage, StageError, TeachRequest, Teaching};

use crate::{Answer, Author, AuthorError, Goal, Listener, Request, Usage};

/// As users call it.
pub const OFFLINE: &str = "offline";

/// What lists candidates for a problem.
pub trait Teacher: Send + Sync {
    /// At most `most` candidates, the most promising first; the same ones in the same order for the same question.
    fn teach(&self, problem: &Path, goal: &Goal, most: u32) -> Result<Teaching, AuthorError>;
}

impl Teacher for Stage {
    fn teach(&self, problem: &Path, goal: &Goal, most: u32) -> Result<Teaching, AuthorError> {
        let request = TeachRequest {
            problem: problem.to_owned(),
            target: goal.target.clone(),
            device: goal.device.clone(),
            max: most,
            skip: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        };
        Stage::teach(self, &request).map_err(|error| match error {
            StageError::Candidate(failure) => AuthorError::Problem(failure.to_string()),
            StageError::Death { .. } => AuthorError::Cannot(error.to_string()),
            other => AuthorError::Infrastructure(other.to_string()),
        })
    }
}

/// Hands out what a [`Teacher`] lists, by number. The teacher is asked once.
pub struct Offline<T> {
    teacher: T,
    most: u32,
    lesson: Mutex<Option<Teaching>>,
}

impl<T: Teacher> Offline<T> {
    /// `most`: candidates that the teacher is asked for.
    pub fn new(teacher: T, most: u32) -> Self {
        Self { teacher, most, lesson: Mutex::new(None) }
    }
}

impl<T: Teacher> Author for Offline<T> {
    fn name(&self) -> &str {
        OFFLINE
    }

    fn write(&self, request: &Request<'_>, _: &mut Listener<'_>) -> Result<Answer, AuthorError> {
        let mut lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        let lesson = match &mut *lesson {
            Some(lesson) => lesson,
            none => none.insert(self.teacher.teach(request.problem, request.goal, self.most)?),
        };
        if lesson.candidates.is_empty() {
            let notes =
                if lesson.notes.is_empty() { "no kernel for this problem".into() } else { lesson.notes.join("; ") };
            return Err(AuthorError::Cannot(notes));
        }
        let number = usize::try_from(request.sample).unwrap_or(usize::MAX);
        let taught = lesson.candidates.get(number).ok_or(AuthorError::Exhausted)?;
        Ok(Answer {
            variant: taught.variant.clone(),
            source: Ok(taught.source.clone()),
            notes: [&taught.about].into_iter().filter(|about| !about.is_empty()).cloned().collect(),
            messages: Vec::new(),
            reply: String::new(),
            truncated: false,
            usage: Usage::default(),
        })
    }

    fn learns(&self) -> bool {
        false
    }
}
