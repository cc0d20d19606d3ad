//! The schema of a watch stream's events.

use serde_json::{Value, json};
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// One event of a watch stream. A server-sent event has named fields, and `data` holds our JSON.
pub struct StreamEvent;

impl ToSchema for StreamEvent {}

impl PartialSchema for StreamEvent {
    fn schema() -> RefOr<Schema> {
        let mut data = Object::with_type(Type::String);
        data.content_media_type = "application/json".to_owned();
        data.content_schema = Some(Box::new(Ref::from_schema_name("WatchEvent").into()));
        let field =
            |schema_type, always: Value| ObjectBuilder::new().schema_type(schema_type).enum_values(Some([always]));
        ObjectBuilder::new()
            .property("event", field(Type::String, json!("state")))
            .property("retry", field(Type::Integer, json!(1000)))
            .property("data", data)
            .required("event")
            .required("retry")
            .required("data")
            .into()
    }
}
