//! The duties of a raft leader: it moves log time on, so that leases end, and ties log time to the calendar.
//!
//! - At the start of its reign it raises the floor of the fencing tokens to its wall clock, and commits the wall clock
//!   anchor.
//! - Each second while leases live it commits a tick, so that a change of raft leader loses at most that much log time.
//! - When a deadline passes it commits a tick at once. So the end of a lease is a fact in the log before any reader,
//!   watcher or waiter hears of it. Otherwise the next raft leader might show the lease as held again.

use std::time::Duration;

use tokio::time::Instant;

use super::handle::Consensus;
use crate::domain::{Command, FencingToken, Outcome, Stamp, WallTime};
use crate::peer::Undecided;

/// A change of raft leader loses at most this much log time while leases live.
const TICK_EVERY: Duration = Duration::from_secs(1);

/// A node that is not raft leader checks this often whether it has become one.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The anchor is set anew when the wall clock is off by more than this.
const WALL_DRIFT_MAX_MS: u64 = 1_000;

/// The deadline of a raft leader's own commands. After that it checks again whether it is still raft leader.
const COMMAND_DEADLINE: Duration = Duration::from_secs(2);

/// Does a raft leader's duties while the node runs.
pub async fn attend(consensus: Consensus) {
    let mut reign_opened = None;
    loop {
        let Some(raft_term) = consensus.own_reign() else {
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        };
        let opened = if reign_opened == Some(raft_term) { Ok(()) } else { open_reign(&consensus).await };
        let attended = match opened {
            Ok(()) => {
                reign_opened = Some(raft_term);
                attend_once(&consensus).await
            }
            Err(error) => Err(error),
        };
        if attended.is_err() {
            // This node is not ready yet, or is no longer raft leader. The next check tells which.
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn open_reign(consensus: &Consensus) -> Result<(), Undecided> {
    // Milliseconds since 1970. So a cluster that is rebuilt from nothing, or from old copies of its data, still grants
    // higher tokens than before. The exception: it has granted more than a thousand a second all its life.
    let floor = FencingToken(consensus.wall_time().0);
    propose(consensus, |stamp| Command::RaiseFencingFloor { stamp, floor }).await?;
    anchor_wall_clock(consensus).await
}

async fn attend_once(consensus: &Consensus) -> Result<(), Undecided> {
    let (next_deadline, now) = consensus.replica().next_deadline();
    let Some(next_deadline) = next_deadline else {
        tokio::time::sleep(TICK_EVERY).await;
        return re_anchor(consensus).await;
    };
    // One millisecond more, because readings are rounded down.
    let until_due = next_deadline.since(now) + Duration::from_millis(1);
    tokio::time::sleep(until_due.min(TICK_EVERY)).await;
    while let Outcome::Ticked { more_due: true } = propose(consensus, |stamp| Command::Tick { stamp }).await? {}
    re_anchor(consensus).await
}

async fn re_anchor(consensus: &Consensus) -> Result<(), Undecided> {
    let Some(anchor) = consensus.replica().position().counters.wall_anchor else { return Ok(()) };
    let (_, log_time) = consensus.replica().next_deadline();
    let expected: WallTime = anchor.wall_time_of(log_time);
    if expected.0.abs_diff(consensus.wall_time().0) > WALL_DRIFT_MAX_MS {
        tracing::info!("the wall clock has stepped: expires_at follows it, but no lease ends earlier or later");
        anchor_wall_clock(consensus).await?;
    }
    Ok(())
}

async fn anchor_wall_clock(consensus: &Consensus) -> Result<(), Undecided> {
    let wall_time = consensus.wall_time();
    propose(consensus, |stamp| Command::AnchorWallClock { stamp, wall_time }).await.map(|_| ())
}

async fn propose(consensus: &Consensus, command: impl FnOnce(Stamp) -> Command + Send) -> Result<Outcome, Undecided> {
    consensus.propose(command, Instant::now() + COMMAND_DEADLINE).await
}
