//! The schemas of single values. The shapes in `wire` hold the domain's types, and the domain knows nothing of OpenAPI.

use std::borrow::Cow;

use serde_json::json;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::{ContenderId, FencingToken, LeaseDuration, Metadata, RoomId, fencing_token_max};
use crate::wire::LeaderToken;

/// Gives each type its schema, under the name that the document uses.
macro_rules! value_schemas {
    ($($value:ty, $name:literal, $schema:expr;)+) => {
        $(
            impl ToSchema for $value {
                fn name() -> Cow<'static, str> {
                    $name.into()
                }
            }

            impl PartialSchema for $value {
                fn schema() -> RefOr<Schema> {
                    $schema.into()
                }
            }
        )+
    };
}

value_schemas! {
    RoomId, "ElectionId", text("The id of a room. Any id of this form can be campaigned for.", "nightly-report")
        .min_length(Some(8))
        .max_length(Some(64))
        .pattern(Some("^[A-Za-z0-9_-]{8,64}$"));
    ContenderId, "CandidateId", text("The name of a candidate.", "worker-a")
        .min_length(Some(1))
        .max_length(Some(64))
        .pattern(Some("^[A-Za-z0-9._:@-]{1,64}$"));
    Metadata, "Metadata",
        text("A note that everybody can read. It has at most 4,096 bytes in UTF-8.", "https://worker-a.internal:8443")
            .max_length(Some(1024));
    // The last of 43 characters holds only four bits of a 32-byte secret. Its other two bits must be zero in base64url.
    LeaderToken, "LeaderToken",
        text("The proof that its owner leads. Keep it secret.", "mJ9r1cQ5bYb6m3lVgq0w3l2f9Jc0a1s5d8h7k4n2x6E")
            .min_length(Some(43))
            .max_length(Some(43))
            .pattern(Some("^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"));
    FencingToken, "Term", number(KnownFormat::Int64, 1, fencing_token_max().0)
        .description(Some(
            "The fencing token. Each new leader of any room gets a higher number than every leader before it.",
        ))
        .examples([json!(1842)]);
    LeaseDuration, "TtlSeconds",
        number(KnownFormat::Int32, LeaseDuration::SECONDS_MIN.into(), LeaseDuration::SECONDS_MAX.into())
            .description(Some("How long a lease lasts without a renewal, in seconds."))
            .examples([json!(LeaseDuration::DEFAULT)]);
}

fn text(description: &str, example: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.description(Some(description)).examples([json!(example)])
}

fn number(format: KnownFormat, minimum: u64, maximum: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(format)))
        .minimum(Some(minimum))
        .maximum(Some(maximum))
}

/// Adds the default TTL of a campaign. A renewal has no default: without a TTL, it keeps the lease's.
pub fn add_default_ttl(document: &mut OpenApi) {
    let schemas = &mut document.components.as_mut().expect("the document has components").schemas;
    let Some(RefOr::T(Schema::Object(campaign))) = schemas.get_mut("CampaignRequest") else {
        panic!("a campaign request is an object");
    };
    let Some(RefOr::T(Schema::OneOf(ttl))) = campaign.properties.get_mut("ttl_seconds") else {
        panic!("the TTL is a number or null");
    };
    ttl.default = Some(json!(LeaseDuration::DEFAULT));
}

#[cfg(test)]
mod tests;
