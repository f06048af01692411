//! Bounds in time.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use futures_util::future::{Either, select};
use worker::Delay;

use crate::time::Wait;

/// The future's output, or `None` if it takes longer than the bound.
pub(super) async fn bounded<F: Future>(future: F, within: Wait) -> Option<F::Output> {
    match select(pin!(future), delay(within)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

fn delay(wait: Wait) -> Pin<Box<Delay>> {
    Box::pin(Delay::from(Duration::from_millis(wait.0)))
}

/// A bound on the silence between many events, with one timer for all of them: setting a timer for each piece of a
/// stream would cost more than relaying it. It passes between one and two bounds after the last event.
#[derive(Default)]
pub(super) struct Watch {
    timer: RefCell<Option<(Wait, Pin<Box<Delay>>)>>,
    active: Cell<bool>,
}

impl Watch {
    /// The future's output, or `None` if it takes longer than the bound.
    pub(super) async fn bounded<F: Future>(&self, future: F, within: Wait) -> Option<F::Output> {
        let mut future = pin!(future);
        // The bound of this event counts from here, unless the timer of the same bound runs already.
        let running = self.timer.borrow().as_ref().is_some_and(|(bound, _)| *bound == within);
        if running {
            self.active.set(true);
        } else {
            self.arm(within);
        }
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            loop {
                let fired = match self.timer.borrow_mut().as_mut() {
                    Some((_, timer)) => timer.as_mut().poll(context).is_ready(),
                    None => true,
                };
                match (fired, self.active.get()) {
                    (false, _) => return Poll::Pending,
                    (true, false) => return Poll::Ready(None),
                    (true, true) => self.arm(within),
                }
            }
        })
        .await
    }

    fn arm(&self, within: Wait) {
        self.active.set(false);
        self.timer.replace(Some((within, delay(within))));
    }
}
