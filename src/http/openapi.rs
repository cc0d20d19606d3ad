//! What the OpenAPI document says beyond the handlers' own types: the title, the errors that each operation can end with,
//! and the headers of every response.

pub mod document;
mod errors;
mod examples;
mod headers;
mod links;
mod parameters;
mod stream_event;
mod values;

pub use errors::{
    CampaignErrors, CreateErrors, HealthErrors, RenewErrors, ResignErrors, StatusErrors, ViewErrors, WatchErrors,
};
pub use examples::add_examples;
pub use headers::add_common_headers;
pub use links::add_links;
pub use parameters::{CampaignHeaders, RoomPath, ViewQuery};
pub use stream_event::StreamEvent;
pub use values::add_default_ttl;
