// The examples in the documentation of `quorate::client` include this file.

/// Runs an example against a node in this process. The node has a free port and a temporary data directory.
fn with_a_node(example: impl AsyncFnOnce([String; 1]) -> Result<(), Box<dyn std::error::Error>>) {
    let folder = tempfile::tempdir().unwrap();
    let settings = quorate::config::RawConfig {
        name: Some("example".into()),
        data_dir: Some(folder.path().join("data")),
        listen: Some("127.0.0.1:0".into()),
        peer_listen: Some("127.0.0.1:0".into()),
        ..Default::default()
    };
    let config = quorate::config::Config::new(settings).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (send_url, url) = tokio::sync::oneshot::channel();
        let node = quorate::node::run(config, move |address| send_url.send(format!("http://{address}")).unwrap());
        tokio::select! {
            ended = node => panic!("the node has ended: {ended:?}"),
            result = async { example([url.await.unwrap()]).await } => result.unwrap(),
        }
    });
}
