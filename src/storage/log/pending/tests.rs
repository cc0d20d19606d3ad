use openraft::type_config::TypeConfigExt;
use raft_log::Callback;

use super::*;

#[tokio::test]
async fn a_callback_that_is_dropped_gets_an_error() {
    let (answer, answered) = TypeConfig::oneshot();
    drop(PendingFlush::new(IOFlushed::signal(answer)));
    assert!(answered.await.unwrap().is_err());
}

#[tokio::test]
async fn every_callback_of_a_group_gets_its_failure() {
    let (first, first_heard) = TypeConfig::oneshot();
    let (second, second_heard) = TypeConfig::oneshot();
    let (done, heard) = std::sync::mpsc::sync_channel(1);
    let pending = vec![PendingFlush::new(IOFlushed::signal(first)), PendingFlush::new(IOFlushed::signal(second))];
    FlushGroup { pending, done }.send(Err(io::Error::from(io::ErrorKind::StorageFull)));
    assert_eq!(first_heard.await.unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(second_heard.await.unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(heard.recv().unwrap().is_err());
}
