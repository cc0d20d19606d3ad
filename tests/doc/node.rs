// For the examples in the documentation of `quorate::client`, which include this file.

/// Runs an example against a node in this process, on a port of its own, with its data in a folder that goes with it.
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
        let (tell, told) = tokio::sync::oneshot::channel();
        let node = quorate::node::run(config, move |address| tell.send(format!("http://{address}")).unwrap());
        tokio::select! {
            ended = node => panic!("the node has ended: {ended:?}"),
            result = async { example([told.await.unwrap()]).await } => result.unwrap(),
        }
    });
}
