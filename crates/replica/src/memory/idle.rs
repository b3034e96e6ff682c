//! Things that wait for their next use and hold mappings meanwhile: instances between messages. They
//! are given up if the mappings are needed elsewhere.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Beyond this number, nothing is kept: an instance reserves half a terabyte of the 128 terabytes of
/// address space.
const MOST: usize = 100;

type Entries = Vec<(u64, Box<dyn Any + Send>)>;

/// All idle things of the process with the number of their slot, the one that waits longest first.
static IDLE: Mutex<Entries> = Mutex::new(Vec::new());

fn locked(idle: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the thing that waits longest. Returns false if there is none.
pub fn give_up_oldest() -> bool {
    take_oldest(&IDLE).is_some()
}

fn take_oldest(idle: &Mutex<Entries>) -> Option<(u64, Box<dyn Any + Send>)> {
    let mut idle = locked(idle);
    if idle.is_empty() { None } else { Some(idle.remove(0)) }
}

/// A slot for one idle thing. It is empty again if the thing was given up.
pub struct Slot<T> {
    number: u64,
    idle: &'static Mutex<Entries>,
    holds: PhantomData<fn() -> T>,
}

impl<T: Any + Send> Slot<T> {
    fn of(idle: &'static Mutex<Entries>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { number: NEXT.fetch_add(1, Relaxed), idle, holds: PhantomData }
    }

    /// Takes the thing out of the slot.
    pub fn take(&self) -> Option<Box<T>> {
        let taken = {
            let mut idle = locked(self.idle);
            let place = idle.iter().position(|(number, _)| *number == self.number)?;
            idle.remove(place).1
        };
        taken.downcast().ok()
    }

    /// Stores a thing, unless the slot has one, as after two uses at once, or too many things are
    /// idle.
    pub fn put(&self, thing: Box<T>) {
        let mut idle = locked(self.idle);
        if idle.len() < MOST && idle.iter().all(|(number, _)| *number != self.number) {
            idle.push((self.number, thing));
        } else {
            // Dropping it takes long.
            drop(idle);
            drop(thing);
        }
    }
}

impl<T: Any + Send> Default for Slot<T> {
    fn default() -> Self {
        Self::of(&IDLE)
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        let own = |(number, _): &mut (u64, _)| *number == self.number;
        let dropped: Vec<_> = locked(self.idle).extract_if(.., own).collect();
        drop(dropped);
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    fn registry() -> &'static Mutex<Entries> {
        Box::leak(Box::default())
    }

    /// Two threads that return a thing at once: one of them is kept, more often than things can be.
    #[test]
    fn one_of_two_things_is_kept() {
        let idle = registry();
        let (slot, barrier) = (Slot::of(idle), Barrier::new(2));
        let alive = Arc::new(());
        for _ in 0..3 * MOST {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let thing = slot.take().unwrap_or_else(|| Box::new(Arc::clone(&alive)));
                        barrier.wait();
                        slot.put(thing);
                    });
                }
            });
            assert_eq!((locked(idle).len(), Arc::strong_count(&alive)), (1, 2));
        }
        assert!(slot.take().is_some() && slot.take().is_none());
    }

    #[test]
    fn a_slot_that_is_dropped_gives_up_its_thing() {
        let idle = registry();
        let alive = Arc::new(());
        let slots: Vec<Slot<Arc<()>>> = (0..MOST + 5).map(|_| Slot::of(idle)).collect();
        slots.iter().for_each(|slot| slot.put(Box::new(Arc::clone(&alive))));
        assert_eq!(Arc::strong_count(&alive), 1 + MOST, "there are not more");
        drop(slots);
        assert_eq!((locked(idle).len(), Arc::strong_count(&alive)), (0, 1));
    }

    #[test]
    fn the_oldest_is_given_up_first() {
        let idle = registry();
        let slots: Vec<Slot<u8>> = (0..3).map(|_| Slot::of(idle)).collect();
        for (slot, thing) in slots.iter().zip(0..) {
            slot.put(Box::new(thing));
        }
        // The first one is used once more.
        slots[0].put(slots[0].take().unwrap());
        let mut order = Vec::new();
        while let Some((number, _)) = take_oldest(idle) {
            order.push(slots.iter().position(|slot| slot.number == number));
        }
        assert_eq!(order, [Some(1), Some(2), Some(0)]);
        assert!(slots.iter().all(|slot| slot.take().is_none()));
    }
}
