//! The answer to a peer request that this node turns down.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// A status, and the reason as a sentence for the other node's trace.
pub struct Rejected(pub StatusCode, pub String);

impl IntoResponse for Rejected {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}
