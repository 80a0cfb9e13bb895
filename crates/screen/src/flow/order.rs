//! The order of sets, and hashes: they change from process to process for all but numbers.

use ruff_text_size::TextRange;

use super::engine::{Engine, ObjectKind};
use super::value::{Guard, ObjId, Set, Value};

/// What the order of a set, or a hash, depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// On the numbers in it.
    Fixed,
    /// Perhaps on the process.
    Unknown,
    /// On the process.
    Random,
}

impl Engine<'_, '_> {
    /// The hash of text and of objects changes with the process; what cannot be told from a number may be either.
    fn hashed(value: Value) -> Order {
        match value {
            Value::Int(_) => Order::Fixed,
            Value::Plain | Value::Unknown | Value::Any => Order::Unknown,
            _ => Order::Random,
        }
    }

    /// The order of a set that holds at least two things, and of what was made by walking over it.
    fn order_of(&mut self, object: ObjId) -> Order {
        match self.objects[object as usize].kind {
            ObjectKind::Shuffled => return Order::Random,
            ObjectKind::Unordered => {}
            _ => return Order::Fixed,
        }
        let all = self.elements(object);
        let many = all.values().len() > 1 || all.values() == [Value::Plain];
        let worst = all.values().iter().map(|&value| Self::hashed(value)).max();
        worst.filter(|_| many).unwrap_or(Order::Fixed)
    }

    /// Whether something is walked over in an order that surely changes.
    pub(super) fn is_shuffled(&mut self, values: &Set) -> bool {
        let is = |it: &mut Self, value| matches!(value, Value::Object(object) if it.order_of(object) == Order::Random);
        values.values().iter().any(|&value| is(self, value))
    }

    /// Notes that the order of the sets among `values` matters at a place. Whether that surely changes what runs: always
    /// if one element is picked, and in what `forward` reaches if all are walked over.
    pub(super) fn note_order(&mut self, values: &Set, place: TextRange, picks: bool) -> bool {
        if self.talks && !picks {
            return false;
        }
        let shuffled = self.is_shuffled(values) && (picks || self.reached() != Guard::Never);
        let unknown =
            |it: &mut Self, value| matches!(value, Value::Object(object) if it.order_of(object) != Order::Fixed);
        if shuffled {
            self.note_random(Order::Random, place);
        } else if values.values().iter().any(|&value| unknown(self, value)) {
            self.note_random(Order::Unknown, place);
        }
        shuffled
    }

    /// Says of new objects that they are sets, or made by walking over one.
    pub(super) fn retype(&mut self, made: &Set, kind: ObjectKind) {
        for &value in made.values() {
            if let Value::Object(object) = value {
                self.objects[object as usize].kind = kind;
            }
        }
    }

    /// Notes that a hash is taken at a place.
    pub(super) fn note_hash(&mut self, of: &Set, place: TextRange) {
        let random = of.values().iter().any(|value| matches!(value, Value::Str(_)));
        // Text that cannot be folded, as opposed to a shape.
        let text = of.open && of.values() == [Value::Plain];
        let plain = !of.is_empty() && of.values().iter().all(|value| matches!(value, Value::Int(_)));
        let order = match (random || text, plain) {
            (true, _) => Order::Random,
            (_, true) => Order::Fixed,
            _ => Order::Unknown,
        };
        self.note_random(order, place);
    }

    /// What is set up in `__init__` and at import counts as well: it decides what `forward` does later.
    fn note_random(&mut self, order: Order, place: TextRange) {
        if order != Order::Fixed && !place.is_empty() {
            *self.orders.entry((place.start(), place.end())).or_default() |= order == Order::Random;
        }
    }
}
