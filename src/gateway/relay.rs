//! Relaying a stream and settling it.
//!
//! Invariant: however a stream ends (its terminal event, an error, silence, a break, a client that leaves or takes
//! nothing any more), its hold ends once, and the client never sees a clean end of an answer that is not whole.

use core::pin::pin;

use futures_util::future::{Either, select};

use super::binding::Answered;
use super::hold::{Ending, Hold};
use super::meter::{Meter, Stage};
use super::ports::{Body, Client, Gone, Piece, Ports};
use super::price::Priced;
use crate::policy::{Bounds, OnDisconnect};
use crate::rejection::UpstreamFault;
use crate::time::Wait;

/// How long the LF of a stream's last CRLF is waited for, where they were cut apart. A stream of CR alone ends this
/// much later, after its client has had the end marker.
const LINE_FEED_WAIT: Wait = Wait::seconds(1);

/// A stream that has begun, and the hold that it has to settle.
#[derive(Debug)]
#[must_use = "a relay has to run, or its hold ends at its deadline"]
pub struct Relay<'p, B> {
    /// The upstream's answer.
    pub body: Answered<B>,
    /// What was read of it already, and what is to be sent on.
    pub meter: Meter,
    /// What the call holds.
    pub hold: Hold,
    /// What it was priced at.
    pub priced: Priced<'p>,
    /// What happens when the client leaves.
    pub on_disconnect: OnDisconnect,
    /// The bounds in time.
    pub bounds: Bounds,
}

/// Why relaying stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The answer is whole, or the upstream itself has said that it is not.
    Ended,
    /// The upstream stopped short.
    Short,
    /// The upstream sent nothing for too long.
    Silent,
    /// The client has left.
    Left,
}

/// Reads until the stream says what it is: its first event, or a comment, which is relayed at once. `left` is how much
/// time there is for that, however small the pieces in which it comes.
///
/// # Errors
/// If it is an error, ends, or takes too long.
pub async fn first_event(
    body: &mut impl Body,
    meter: &mut Meter,
    left: impl Fn() -> Wait,
) -> Result<(), UpstreamFault> {
    while meter.stage() == Stage::Silent && !meter.has_out() {
        let within = left();
        let next = if within == Wait(0) { Piece::TimedOut } else { body.next(within).await };
        match next {
            Piece::Bytes(bytes) => meter.push(&bytes),
            Piece::TimedOut => {
                body.cancel();
                return Err(UpstreamFault::Timeout);
            }
            Piece::Broken => return Err(UpstreamFault::Invalid),
            Piece::End => {
                let whole = meter.finish();
                let broke_off = !whole && meter.stage() == Stage::Going && !meter.seen().any();
                if broke_off || meter.stage() == Stage::Silent {
                    return Err(UpstreamFault::Invalid);
                }
            }
        }
    }
    if meter.stage() == Stage::Failed {
        body.cancel();
        return Err(UpstreamFault::Failed { status: 200 });
    }
    Ok(())
}

impl<B: Body> Relay<'_, B> {
    /// Relays the stream to the client, then settles.
    pub async fn run<P: Ports>(mut self, ports: &P, client: &mut impl Client) {
        let stop = self.relay(ports, client).await;
        match stop {
            Stop::Left if self.on_disconnect == OnDisconnect::Drain => self.drain(ports).await,
            Stop::Ended | Stop::Left => {}
            // There is no event that could say so: the connection does, by not being ended.
            Stop::Short | Stop::Silent if self.meter.is_raw() => self.hold.record.verdict = "upstream_broke_off",
            Stop::Short | Stop::Silent => {
                let fault = if stop == Stop::Silent { UpstreamFault::Timeout } else { UpstreamFault::Invalid };
                // The client may have left by now; the charge is the same.
                let event = fault.stream_event(self.meter.error_event(), &self.hold.record.id);
                let _ = client.write(event.as_bytes(), self.bounds.idle).await;
                self.hold.record.verdict = "upstream_broke_off";
            }
        }
        self.body.cancel();
        self.hold.record.client_left = stop == Stop::Left;
        if self.meter.stage() == Stage::Failed {
            self.hold.record.verdict = "upstream_failed";
        }
        let ending = self.ending(stop);
        self.hold.end(ports, ending).await;
        let breaks = self.meter.is_raw() && matches!(stop, Stop::Short | Stop::Silent);
        if stop != Stop::Left && !breaks {
            // Last, since a client that takes nothing any more may keep it waiting.
            client.close().await;
        }
    }

    async fn relay<P: Ports>(&mut self, ports: &P, client: &mut impl Client) -> Stop {
        // The hold runs since the call was reserved, which was after it came in.
        let mut extend_at = self.hold.record.at.after(Wait(self.bounds.hold.0 / 2));
        loop {
            // A client that takes nothing for half as long as a hold lasts is gone for our purposes.
            if self.send(client, Wait(self.bounds.hold.0 / 2)).await.is_err() {
                return Stop::Left;
            }
            if matches!(self.meter.stage(), Stage::Done | Stage::Failed) {
                return self.last_line_feed(client).await;
            }
            if ports.now() >= extend_at {
                // If it is lost, again soon: at the deadline the slot is gone.
                let extended = self.hold.extend(ports, self.bounds.hold).await;
                let part = if extended { 2 } else { 8 };
                extend_at = ports.now().after(Wait(self.bounds.hold.0 / part));
            }
            let next = {
                let next = pin!(self.body.next(self.bounds.idle));
                let gone = pin!(client.gone());
                match select(next, gone).await {
                    Either::Left((piece, _)) => piece,
                    Either::Right(((), _)) => return Stop::Left,
                }
            };
            match next {
                Piece::Bytes(bytes) => self.meter.push(&bytes),
                Piece::TimedOut => return Stop::Silent,
                Piece::Broken => return Stop::Short,
                Piece::End => {
                    let whole = self.meter.finish();
                    if self.send(client, self.bounds.idle).await.is_err() {
                        return Stop::Left;
                    }
                    return if whole || self.meter.stage() == Stage::Failed { Stop::Ended } else { Stop::Short };
                }
            }
        }
    }

    /// Sends on what is ready.
    async fn send(&mut self, client: &mut impl Client, within: Wait) -> Result<(), Gone> {
        let out = self.meter.take_out();
        if out.is_empty() { Ok(()) } else { client.write(&out, within).await }
    }

    /// The end of the end marker may be cut between its CR and its LF.
    async fn last_line_feed(&mut self, client: &mut impl Client) -> Stop {
        if self.meter.may_lack_line_feed()
            && let Piece::Bytes(bytes) = self.body.next(LINE_FEED_WAIT).await
        {
            self.meter.push(&bytes);
            if self.send(client, self.bounds.idle).await.is_err() {
                return Stop::Left;
            }
        }
        Stop::Ended
    }

    /// Reads on for the usage alone.
    async fn drain<P: Ports>(&mut self, ports: &P) {
        let until = ports.now().after(self.bounds.drain);
        while !matches!(self.meter.stage(), Stage::Done | Stage::Failed) {
            let rest = until.since(ports.now());
            match self.body.next(rest.min(self.bounds.idle)).await {
                Piece::Bytes(bytes) if rest.0 > 0 => self.meter.push(&bytes),
                Piece::End => {
                    self.meter.finish();
                    return;
                }
                _ => return,
            }
            self.meter.take_out();
        }
    }

    /// A stream that failed before any output costs nothing; everything else what is known or was seen.
    fn ending(&self, stop: Stop) -> Ending {
        let failed = matches!(stop, Stop::Short | Stop::Silent) || self.meter.stage() == Stage::Failed;
        let has_used = self.meter.usage().is_some_and(|usage| !usage.is_opening());
        if failed && !self.meter.seen().any() && !has_used {
            // After a time-out the provider may have worked, so the day's count stays.
            return Ending::Release { give_back: stop != Stop::Silent };
        }
        Ending::Settle(self.priced.charge(self.meter.usage(), self.meter.seen(), self.meter.is_whole()))
    }
}
