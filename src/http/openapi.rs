//! The OpenAPI document. The operations come from the handlers and the shapes from `wire`. Here is the rest: the title,
//! parameters, the errors of each operation, the headers of responses, the schemas of single values and of stream
//! events, examples and links.

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
