//! Links say which values of a response go into the next request. Programs that read the document follow them.

use serde_json::json;
use utoipa::openapi::link::Link;
use utoipa::openapi::{OpenApi, RefOr};

/// Adds a link from each response with a room or a token to the operations that take it.
pub fn add_links(document: &mut OpenApi) {
    let responses = document.paths.paths.values_mut().filter_map(|item| item.post.as_mut()).flat_map(|operation| {
        let id = operation.operation_id.clone().unwrap_or_default();
        operation.responses.responses.iter_mut().map(move |(status, response)| (id.clone(), status, response))
    });
    for (id, status, response) in responses {
        let targets: &[(&str, Carries)] = match (id.as_str(), status.as_str()) {
            ("createElection", "201") => {
                &[("campaign", Carries::Room), ("getElection", Carries::Room), ("watch", Carries::Room)]
            }
            ("campaign" | "renew", "200") => &[("renew", Carries::RoomAndToken), ("resign", Carries::RoomAndToken)],
            _ => &[],
        };
        let RefOr::T(response) = response else { continue };
        for (target, carries) in targets {
            response.links.insert((*target).to_owned(), carries.link_to(target).into());
        }
    }
}

/// The values that go from a response into the next request.
enum Carries {
    Room,
    RoomAndToken,
}

impl Carries {
    fn link_to(&self, target: &str) -> Link {
        let link = Link::builder().operation_id(target).parameter("election_id", "$response.body#/election_id");
        match self {
            Self::Room => link.description("The room in this response.").build(),
            Self::RoomAndToken => link
                .request_body(Some(json!({"leader_token": "$response.body#/leader_token"})))
                .description("The lease whose token is in this response, if it has one.")
                .build(),
        }
    }
}
