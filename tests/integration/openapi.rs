//! The OpenAPI document describes the node that serves it. [`Caller`] checks for each request that the document has its
//! status.

use std::collections::BTreeSet;

use reqwest::Method;

use crate::caller::Caller;
use crate::harness::Cluster;

/// All operations of the contract.
const OPERATIONS: [&str; 11] = [
    "GET /elections/{election_id}",
    "GET /elections/{election_id}/watch",
    "GET /health",
    "GET /livez",
    "GET /openapi.json",
    "GET /readyz",
    "GET /status",
    "POST /elections",
    "POST /elections/{election_id}/campaign",
    "POST /elections/{election_id}/renew",
    "POST /elections/{election_id}/resign",
];

const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::TRACE];

#[tokio::test(flavor = "multi_thread")]
async fn the_document_lists_exactly_the_routes_that_are_served() {
    let cluster = Cluster::single().await;
    let node = Caller::of(&cluster.nodes[0]).await;
    let answer = node.get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert!(answer.body["openapi"].as_str().unwrap().starts_with("3.1"), "{}", answer.body["openapi"]);

    let paths = answer.body["paths"].as_object().unwrap();
    let mut documented = BTreeSet::new();
    let mut served = BTreeSet::new();
    for (path, item) in paths {
        documented.extend(
            METHODS
                .iter()
                .filter(|method| item.get(method.as_str().to_lowercase()).is_some())
                .map(|method| format!("{method} {path}")),
        );
        for method in METHODS {
            // The id is too short for a room, so a watch stream ends at once. The route exists all the same.
            let answer = node.send(node.request(method.clone(), &path.replace("{election_id}", "short"))).await;
            assert_ne!(answer.status, 404, "{method} {path}");
            if answer.status != 405 {
                served.insert(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(documented, served);
    assert_eq!(documented, OPERATIONS.map(str::to_owned).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reference_in_the_document_has_a_target() {
    let cluster = Cluster::single().await;
    let document = Caller::of(&cluster.nodes[0]).await.document;
    let text = document.to_string();
    let references: BTreeSet<&str> =
        text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(references.len() > 5, "{references:?}");
    for reference in references {
        assert!(document.pointer(reference).is_some(), "{reference} has no target");
    }
    let term = document.pointer("/components/schemas/Term").unwrap();
    assert_eq!((&term["type"], &term["maximum"]), (&"integer".into(), &((1_u64 << 53) - 1).into()));
    let ids: BTreeSet<&str> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    assert_eq!(ids.len(), OPERATIONS.len(), "two operations have the same id");
}
