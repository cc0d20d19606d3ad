use std::sync::Mutex;

use futures::future::BoxFuture;

use super::*;
use crate::codec;
use crate::peer::{Carrier, Delivered, Parcel};
use crate::random::SystemRandom;
use crate::storage::{SnapshotFile, StorageConfig};

/// Records the timeout of each parcel, and delivers none.
#[derive(Default)]
struct Timing(Mutex<Vec<Duration>>);

impl Carrier for Timing {
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, PeerError>> {
        self.0.lock().unwrap().push(parcel.timeout);
        Box::pin(async { Err(PeerError::Unreachable { address: parcel.address, reason: "nobody is there".into() }) })
    }
}

/// Gives every request the same answer.
struct SameAnswer(Vec<u8>);

impl Carrier for SameAnswer {
    fn post(&self, _parcel: Parcel) -> BoxFuture<'static, Result<Delivered, PeerError>> {
        let delivered = Delivered { status: 200, body: self.0.clone() };
        Box::pin(async { Ok(delivered) })
    }
}

async fn link_over(carrier: Arc<dyn Carrier>, folder: &tempfile::TempDir) -> PeerLink {
    let storage = crate::storage::open(StorageConfig::new(folder.path(), "node-a"), &SystemRandom).unwrap();
    let mut links = PeerLinks {
        transport: Transport::new(carrier, None).unwrap(),
        local: Arc::new(LocalNode::new(storage.identity, Node::default())),
        snapshots: storage.snapshots,
        new_snapshot: mpsc::channel(1).0,
        silence: Arc::new(Silence::new(Duration::from_millis(500))),
    };
    links.new_client(2, &Node::default()).await
}

/// A false peer at a peer's address could stop the cluster with one such answer.
#[tokio::test]
async fn an_absurd_raft_term_in_an_answer_does_not_reach_openraft() {
    let own = Vote::new_committed(3, 1);
    let option = RPCOption::new(Duration::from_millis(200));
    for raft_term in [u64::MAX, (1 << 48) + 1, 1 << 40] {
        let higher = AppendEntriesResponse::<TypeConfig>::HigherVote(Vote::new(raft_term, 2));
        let folder = tempfile::tempdir().unwrap();
        let mut link = link_over(Arc::new(SameAnswer(codec::encode(&higher).unwrap())), &folder).await;
        let append = AppendEntriesRequest { vote: own, prev_log_id: None, entries: Vec::new(), leader_commit: None };
        assert!(matches!(link.append_entries(append, option.clone()).await, Err(RPCError::Network(_))));

        let voted = VoteResponse::<TypeConfig>::new(Vote::new(raft_term, 2), None, false);
        let folder = tempfile::tempdir().unwrap();
        let mut link = link_over(Arc::new(SameAnswer(codec::encode(&voted).unwrap())), &folder).await;
        let request = VoteRequest::new(own, None);
        assert!(matches!(link.vote(request.clone(), option.clone()).await, Err(RPCError::Network(_))));
        assert!(matches!(link.pre_vote(request, option.clone()).await, Err(RPCError::Network(_))));
    }
}

#[tokio::test]
async fn the_timeout_of_a_snapshot_grows_with_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let storage = crate::storage::open(StorageConfig::new(folder.path(), "node-a"), &SystemRandom).unwrap();
    let meta = crate::raft_types::SnapshotMeta::default();
    let written = storage.snapshots.write(None, &meta, Default::default(), std::iter::empty()).unwrap();
    let timing = Arc::new(Timing::default());
    let mut link = PeerLinks {
        transport: Transport::new(timing.clone(), None).unwrap(),
        local: Arc::new(LocalNode::new(storage.identity, Node::default())),
        snapshots: storage.snapshots,
        new_snapshot: mpsc::channel(1).0,
        silence: Arc::new(Silence::new(Duration::from_millis(500))),
    }
    .new_client(2, &Node::default())
    .await;
    let mut expected = Vec::new();
    for mebibytes in [0, 10, 60, 1_000] {
        let snapshot = SnapshotFile { bytes: mebibytes << 20, ..written.clone() };
        let snapshot = RaftSnapshot::Own(snapshot);
        let snapshot = SnapshotOf::<TypeConfig, _> { meta: meta.clone(), snapshot };
        // Openraft's own timeout is the same for all snapshots.
        let option = RPCOption::new(Duration::from_millis(200));
        let never = std::future::pending();
        assert!(link.full_snapshot(Vote::new_committed(1, 1), snapshot, never, option).await.is_err());
        expected.push(Duration::from_secs(5 + mebibytes));
    }
    assert_eq!(*timing.0.lock().unwrap(), expected);
}
