//! A model of raft that keeps raft's promises.
//!
//! A raft leader is elected by a majority whose logs are not ahead of its own. It may act for a long time before it
//! hears that it was deposed. It commits only entries of its own raft term, once a majority has them. Whether the last
//! entries of a deposed raft leader survive depends on the log of the next one.

use std::rc::Rc;

use rand::RngExt;

use super::{Cluster, Entry, NODES, Node, Proposal};
use crate::lease_clock::watch::{MILLISECOND, Violation};

impl Cluster {
    pub(super) fn append(&mut self, node: usize, proposal: Proposal) {
        let node = &mut self.nodes[node];
        if let Some(raft_term) = node.reign {
            node.log.push(Rc::new(Entry { raft_term, proposal: Some(proposal) }));
        }
    }

    /// A raft election takes 1 ms or more (`watch` says why that matters).
    pub(super) fn elect(&mut self, node: usize) {
        self.now += self.random.random_range(MILLISECOND..20 * MILLISECOND);
        let position = |of: &Node| (of.last_raft_term(), of.log.len());
        let voters: Vec<_> = (0..NODES)
            .filter(|voter| *voter != node && self.are_in_touch(node, *voter))
            .filter(|voter| position(&self.nodes[*voter]) <= position(&self.nodes[node]))
            .collect();
        if voters.is_empty() || self.is_stalled(node) {
            return;
        }
        let voter = voters[self.random.random_range(0..voters.len())];
        let led = self.nodes[node].led;
        self.watch.coverage.raft_re_elections += u64::from(led > 0 && led < self.raft_term);
        self.watch.coverage.reigns += 1;
        self.raft_term += 1;
        self.nodes[voter].meet(self.raft_term);
        let elected = &mut self.nodes[node];
        elected.meet(self.raft_term);
        elected.reign = Some(self.raft_term);
        elected.led = self.raft_term;
        elected.acknowledged = [0; NODES];
        elected.log.push(Rc::new(Entry { raft_term: self.raft_term, proposal: None }));
    }

    /// The raft leader `from` sends `to` a part of its log, and the position up to which it knows entries to be
    /// committed.
    pub(super) fn replicate(&mut self, from: usize, to: usize) -> Result<(), Violation> {
        let most = self.nodes[from].log.len();
        let upto = if self.random.random_bool(0.7) { most } else { self.random.random_range(0..=most) };
        self.send(from, to, upto)
    }

    pub(super) fn send(&mut self, from: usize, to: usize, upto: usize) -> Result<(), Violation> {
        let Some(reign) = self.nodes[from].reign else { return Ok(()) };
        if !self.are_in_touch(from, to) {
            return Ok(());
        }
        if self.nodes[to].raft_term > reign {
            // The rejection may be lost. Then the deposed raft leader goes on.
            if self.random.random_bool(0.4) {
                let newer = self.nodes[to].raft_term;
                self.nodes[from].meet(newer);
            }
            return Ok(());
        }
        self.nodes[to].meet(reign);
        let sent: Vec<_> = self.nodes[from].log[..upto].to_vec();
        let follower = &mut self.nodes[to];
        let common = sent.iter().zip(&follower.log).take_while(|(a, b)| Rc::ptr_eq(a, b)).count();
        if common < sent.len() {
            self.watch.coverage.lost_entries += (follower.log.len() - common) as u64;
            follower.log.truncate(common);
            follower.log.extend_from_slice(&sent[common..]);
        }
        let committed = self.nodes[from].committed.min(sent.len());
        let follower = &mut self.nodes[to];
        follower.committed = follower.committed.max(committed);
        self.nodes[from].acknowledged[to] = self.nodes[from].acknowledged[to].max(sent.len());
        self.commit(from)
    }

    fn commit(&mut self, raft_leader: usize) -> Result<(), Violation> {
        let node = &mut self.nodes[raft_leader];
        let majority = *node.acknowledged.iter().max().expect("there are nodes");
        if majority <= node.committed || Some(node.log[majority - 1].raft_term) != node.reign {
            return Ok(());
        }
        node.committed = majority;
        let log = node.log[..majority].to_vec();
        for (index, entry) in log.into_iter().enumerate() {
            match self.committed.get(index) {
                Some(known) => assert!(Rc::ptr_eq(known, &entry), "raft committed two entries at the same position"),
                None => self.entry_committed(entry)?,
            }
        }
        Ok(())
    }

    fn entry_committed(&mut self, entry: Rc<Entry>) -> Result<(), Violation> {
        self.committed.push(entry.clone());
        let Some(proposal) = &entry.proposal else { return Ok(()) };
        let command = self.rule.command_to_apply(entry.raft_term, &proposal.command);
        let effect = self.rooms.apply(entry.raft_term, &command);
        self.watch.committed(&command, proposal.stamped_at, &effect.outcome, self.rooms.log_time())
    }

    /// A moment without faults: the raft leader's log reaches all nodes, is committed, and the raft leader applies it.
    pub(super) fn round(&mut self, raft_leader: usize) -> Result<(), Violation> {
        if self.nodes[raft_leader].reign.is_none() {
            return Ok(());
        }
        for other in (0..NODES).filter(|other| *other != raft_leader) {
            self.send(raft_leader, other, self.nodes[raft_leader].log.len())?;
        }
        self.apply(raft_leader, usize::MAX);
        for other in (0..NODES).filter(|other| *other != raft_leader) {
            self.send(raft_leader, other, self.nodes[raft_leader].log.len())?;
        }
        Ok(())
    }
}

impl Node {
    pub(super) fn last_raft_term(&self) -> u64 {
        self.log.last().map_or(0, |entry| entry.raft_term)
    }

    /// A node that hears of a newer raft term adopts it, and is no longer raft leader.
    fn meet(&mut self, raft_term: u64) {
        if raft_term > self.raft_term {
            self.raft_term = raft_term;
            self.reign = None;
        }
    }
}
