//! The parameters of requests.

use utoipa::IntoParams;

use super::super::extract::ConsistencyWord;
use crate::domain::RoomId;

/// The room in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Room`")]
pub struct RoomPath {
    /// The room.
    #[param(inline)]
    election_id: RoomId,
}

/// The headers of a campaign.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Idempotency`")]
pub struct CampaignHeaders {
    /// A new random secret for each campaign. If the answer is lost, repeat the campaign with the same key, at any
    /// node: for as long as the lease lives, the same room, candidate and key get the same term and token again.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 16,
        max_length = 128,
        pattern = "^[!-~]{16,128}$"
    )]
    idempotency_key: Option<String>,
}

/// How up to date the state must be.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Freshness`")]
pub struct ViewQuery {
    /// `linearizable`, the default, is true at a moment after the request was sent. `local` is what this node knows: it
    /// comes at once, and without a quorum, but may be out of date.
    #[param(inline, nullable = false, example = "local")]
    consistency: Option<ConsistencyWord>,
}
