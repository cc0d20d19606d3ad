//! Keeps callers without access from the election routes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::context::HandlerContext;
use super::error::HttpError;

/// Lets a request pass if its caller may use the election routes.
pub async fn guard(
    State(context): State<Arc<HandlerContext>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    context.access.check(request.headers())?;
    Ok(next.run(request).await)
}
