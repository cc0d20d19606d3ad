//! The headers of responses.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::{OpenApi, RefOr};

/// Adds the headers that `envelope` adds.
pub fn add_common_headers(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    let request_id = text_header("The id that the server gave this request");
                    response.headers.insert("X-Request-Id".to_owned(), request_id.into());
                    response.headers.insert("Cache-Control".to_owned(), text_header("Always `no-store`").into());
                }
            }
        }
    }
}

/// A header with a text as its value.
pub fn text_header(description: &str) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(Type::String))).description(Some(description)).build()
}
