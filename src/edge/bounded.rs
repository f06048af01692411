//! Bounds in time.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use futures_util::future::{Either, select};
use wasm_bindgen::JsValue;
use worker::Delay;

use super::js::thrown;
use crate::gateway::ports::Unavailable;
use crate::time::Wait;

/// The future's output, or `None` if it takes longer than the bound.
pub(super) async fn bounded<F: Future>(future: F, within: Wait) -> Option<F::Output> {
    match select(pin!(future), delay(within)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

/// What an answer comes to, or why there is none.
pub(super) async fn answered<T>(
    asking: impl Future<Output = Result<T, JsValue>>,
    within: Wait,
) -> Result<T, Unavailable> {
    match bounded(asking, within).await {
        Some(answer) => answer.map_err(|fault| Unavailable(thrown(&fault))),
        None => Err(Unavailable(format!("no answer within {} ms", within.0))),
    }
}

/// Returns when the time has passed.
pub(super) async fn pause(wait: Wait) {
    delay(wait).await;
}

fn delay(wait: Wait) -> Pin<Box<Delay>> {
    Box::pin(Delay::from(Duration::from_millis(wait.0)))
}

/// A bound on the silence between many events, with one timer for all of them: setting a timer for each piece of a
/// stream would cost more than relaying it. It passes between one and two bounds after the last event.
#[derive(Default)]
pub(super) struct Watch {
    timer: RefCell<Option<Timer>>,
    active: Cell<bool>,
}

struct Timer {
    bound: Wait,
    delay: Pin<Box<Delay>>,
    /// Whom it wakes: it remembers the first that asked, so it is of no use to another task.
    waker: Option<Waker>,
}

impl Watch {
    /// The future's output, or `None` if it takes longer than the bound.
    pub(super) async fn bounded<F: Future>(&self, future: F, within: Wait) -> Option<F::Output> {
        let mut future = pin!(future);
        // The bound of this event counts from here, unless the timer of the same bound runs already.
        let running = self.timer.borrow().as_ref().is_some_and(|timer| timer.bound == within);
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
                let fired = self.poll_timer(context);
                match (fired, self.active.get()) {
                    (Some(false), _) => return Poll::Pending,
                    (Some(true), false) => return Poll::Ready(None),
                    (Some(true), true) | (None, _) => self.arm(within),
                }
            }
        })
        .await
    }

    /// Whether the timer has fired; `None` if it would wake another task.
    fn poll_timer(&self, context: &mut Context<'_>) -> Option<bool> {
        let mut timer = self.timer.borrow_mut();
        let timer = timer.as_mut()?;
        if timer.waker.as_ref().is_some_and(|waker| !waker.will_wake(context.waker())) {
            return None;
        }
        timer.waker.get_or_insert_with(|| context.waker().clone());
        Some(timer.delay.as_mut().poll(context).is_ready())
    }

    fn arm(&self, within: Wait) {
        self.active.set(false);
        self.timer.replace(Some(Timer { bound: within, delay: delay(within), waker: None }));
    }
}
