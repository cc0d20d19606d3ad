use std::sync::Mutex;

use futures::future::BoxFuture;

use super::*;
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
