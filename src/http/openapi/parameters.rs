//! The parameters of requests.

use utoipa::IntoParams;

use super::super::extract::ConsistencyWord;
use crate::domain::RoomId;

/// The room in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Room`")]
pub struct RoomPath {
    /// The room: any id of this form can be campaigned for.
    #[param(inline)]
    election_id: RoomId,
}

/// What a campaign can say in its headers.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Idempotency`")]
pub struct CampaignHeaders {
    /// A fresh random secret per campaign attempt: the same key, room and candidate get the same term and token
    /// again for as long as that lease lives, from any node.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 16,
        max_length = 128,
        pattern = "^[!-~]{16,128}$"
    )]
    idempotency_key: Option<String>,
}

/// How fresh a look must be.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::HowFresh`")]
pub struct ViewQuery {
    /// `linearizable`, the default, is true at a moment after the question was asked; `local` is what this node
    /// knows, at once, quorum or not.
    #[param(inline, nullable = false, example = "local")]
    consistency: Option<ConsistencyWord>,
}
