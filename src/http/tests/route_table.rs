//! All routes: each is documented, checks access as it should, and answers only to its own methods.

use super::*;
use crate::service::LeaseSecret;

/// All documented operations, as (method, path with this room in it).
pub async fn documented(room: &str) -> Vec<(String, String)> {
    let document = get_path("/openapi.json").await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            operations.push((method.to_uppercase(), path.replace("{election_id}", room)));
        }
    }
    operations
}

#[tokio::test]
async fn every_election_route_requires_an_access_token_and_the_others_do_not() {
    let router = router_with(HttpSettings {
        access_tokens: vec!["first-token".into(), "second-token".into(), "".into()],
        ..Default::default()
    });
    for (method, path) in documented("short").await.iter().filter(|(_, path)| path.starts_with("/elections")) {
        let call = async |authorization: &[&str]| {
            let headers: Vec<_> = authorization.iter().map(|value| ("authorization", *value)).collect();
            send(&router, request(method, path, &headers, "")).await
        };
        for none in [&[][..], &["Basic Zmlyc3QtdG9rZW4="], &["first-token"], &["Bearerfirst-token"]] {
            let answer = call(none).await;
            assert_eq!(answer.code(), "authentication_required", "{method} {path} {none:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
        for wrong in [
            &["Bearer wrong"][..],
            &["Bearer "],
            &["Bearer"],
            &["Bearer first-toke"],
            &["Bearer first-tokenn"],
            &["Bearer first-token", "Bearer first-token"],
        ] {
            let answer = call(wrong).await;
            assert_eq!(answer.code(), "authentication_failed", "{method} {path} {wrong:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
        for right in ["Bearer first-token", "bearer second-token", "BEARER  first-token"] {
            let status = call(&[right]).await.status;
            assert!(matches!(status, StatusCode::CREATED | StatusCode::BAD_REQUEST), "{method} {path} {status}");
        }
    }
    for (method, path) in documented("short").await.iter().filter(|(_, path)| !path.starts_with("/elections")) {
        assert!(["/livez", "/readyz", "/health", "/status", "/openapi.json"].contains(&&**path), "{method} {path}");
        assert_ne!(send(&router, request(method, path, &[], "")).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
}

#[tokio::test]
async fn election_routes_are_forbidden_if_elections_are_switched_off() {
    let router = router_with(HttpSettings { elections_enabled: false, ..Default::default() });
    for (method, path) in documented("short").await {
        let answer = send(&router, request(&method, &path, &[], "")).await;
        assert_eq!(answer.status == StatusCode::FORBIDDEN, path.starts_with("/elections"), "{method} {path}");
    }
}

#[tokio::test]
async fn the_documented_routes_are_the_served_routes() {
    let documented = documented("short").await;
    assert_eq!(documented.len(), 11);
    let router = router();
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
    for (_, path) in &documented {
        for method in methods {
            let answer = send(&router, request(method, path, &[], "")).await;
            assert_ne!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
            let is_routed = answer.status != StatusCode::METHOD_NOT_ALLOWED;
            let is_documented = documented.contains(&(method.to_owned(), path.clone()));
            assert_eq!(is_routed, is_documented, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_document_is_complete() {
    let document = get_path("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["license"]["name"], "MIT OR Apache-2.0");
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"].get(name).is_some(),
            "{name} is missing, and the document refers to it"
        );
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let headers = &response["headers"];
                assert!(headers.get("X-Request-Id").is_some(), "{method} {path} {status}");
                if !status.starts_with('2') {
                    let schema = &response["content"]["application/json"]["schema"]["$ref"];
                    assert_eq!(schema, "#/components/schemas/ErrorBody", "{method} {path} {status}");
                }
            }
        }
    }
    let campaign = &document["paths"]["/elections/{election_id}/campaign"]["post"];
    let statuses: Vec<_> = campaign["responses"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(statuses, ["200", "400", "401", "403", "409", "413", "415", "429", "500", "503"]);
    assert!(campaign["parameters"].to_string().contains("Idempotency-Key"));
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Leader"]["properties"]["term"]["$ref"], "#/components/schemas/Term");
    let term = &schemas["Term"];
    assert_eq!((&term["minimum"], &term["maximum"]), (&json!(1), &json!((1u64 << 53) - 1)));
}

#[tokio::test]
async fn the_document_describes_exactly_the_tokens_that_are_accepted() {
    let document = get_path("/openapi.json").await.json();
    let pattern = document["components"]["schemas"]["LeaderToken"]["pattern"].as_str().unwrap();
    let last = pattern.strip_prefix("^[A-Za-z0-9_-]{42}[").and_then(|rest| rest.strip_suffix("]$")).unwrap();
    for character in ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']) {
        let token = format!("{}{character}", "A".repeat(42));
        assert_eq!(LeaseSecret::from_text(&token).is_ok(), last.contains(character), "{character}");
    }
}

#[tokio::test]
async fn each_link_leads_to_an_operation_that_takes_its_values() {
    let document = get_path("/openapi.json").await.json();
    let operations: Vec<_> =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values()).collect();
    let mut links = Vec::new();
    for operation in &operations {
        for response in operation["responses"].as_object().unwrap().values() {
            for link in response["links"].as_object().into_iter().flat_map(|links| links.values()) {
                let target = operations.iter().find(|one| one["operationId"] == link["operationId"]).unwrap();
                for name in link["parameters"].as_object().unwrap().keys() {
                    let takes = target["parameters"].as_array().unwrap().iter().any(|one| one["name"] == **name);
                    assert!(takes, "{link}");
                }
                let reference = target["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
                for name in link["requestBody"].as_object().into_iter().flat_map(|body| body.keys()) {
                    let schema = document.pointer(reference.unwrap().strip_prefix('#').unwrap()).unwrap();
                    assert!(schema["properties"].get(name).is_some(), "{link}");
                }
                links.push(format!("{} -> {}", operation["operationId"], link["operationId"]).replace('"', ""));
            }
        }
    }
    links.sort();
    let expected = "campaign -> renew, campaign -> resign, createElection -> campaign, createElection -> getElection, \
                    createElection -> watch, renew -> renew, renew -> resign";
    assert_eq!(links.join(", "), expected);
}

#[tokio::test]
async fn the_schema_of_a_stream_is_one_event_with_our_json_in_it() {
    let document = get_path("/openapi.json").await.json();
    let answer = &document["paths"]["/elections/{election_id}/watch"]["get"]["responses"]["200"];
    let schema = &answer["content"]["text/event-stream"]["schema"];
    assert_eq!(schema["required"], json!(["event", "retry", "data"]), "{schema}");
    assert_eq!(schema["properties"]["data"]["contentSchema"]["$ref"], "#/components/schemas/WatchEvent");
    assert_eq!(schema["properties"]["data"]["contentMediaType"], "application/json");
}
