//! The client's address. Limits are counted for each client address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

use super::context::HandlerContext;
use super::error::HttpError;
use crate::listen::ClientKey;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl FromRequestParts<Arc<HandlerContext>> for ClientKey {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let ConnectInfo(socket) =
            ConnectInfo::<SocketAddr>::from_request_parts(parts, context).await.map_err(|_| HttpError::Bug {
                cause: "the listener does not give the client's address to its handlers".to_owned(),
            })?;
        Ok(Self::of(client_address(socket.ip(), &parts.headers, &context.settings.trusted_proxies)))
    }
}

/// The socket's address, or the client's address according to trusted proxies.
///
/// A proxy adds to one of the two headers and passes the other on unchanged, as the client wrote it. The node can't
/// know which one the proxy uses. So if both are present, they count only if they agree.
fn client_address(socket: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> IpAddr {
    let walk = |name: &HeaderName, read: fn(&str) -> Option<IpAddr>| {
        let hops = headers.get_all(name).iter().rev().flat_map(move |value| {
            // A header that is not text counts as one hop without an address.
            value.to_str().unwrap_or("").rsplit(',').map(read)
        });
        last_untrusted(socket, hops, trusted_proxies)
    };
    let by_x_forwarded_for = || walk(&X_FORWARDED_FOR, read_address);
    let by_forwarded = || walk(&header::FORWARDED, read_forwarded_element);
    match (headers.contains_key(&X_FORWARDED_FOR), headers.contains_key(header::FORWARDED)) {
        (true, true) => {
            let address = by_x_forwarded_for();
            if address == by_forwarded() { address } else { socket.to_canonical() }
        }
        (true, false) => by_x_forwarded_for(),
        (false, _) => by_forwarded(),
    }
}

/// Follows the hops from the socket to the left for as long as each hop is a trusted proxy. Only an address that a
/// trusted proxy has added is believed. The client can have written everything to the left of that address.
fn last_untrusted(socket: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>, trusted_proxies: &[IpNet]) -> IpAddr {
    let mut client = socket.to_canonical();
    for hop in hops {
        let is_trusted = trusted_proxies.iter().any(|network| network.contains(&client));
        match hop {
            Some(address) if is_trusted => client = address,
            _ => break,
        }
    }
    client
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
fn read_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip())).map(|address| address.to_canonical())
}

/// One element of `Forwarded` (RFC 7239): `for="[2001:db8::1]:4711";proto=https`.
///
/// The header is split at every comma on purpose, even inside quotes. Otherwise a quote that the client opened could
/// hide what the proxy added after it.
fn read_forwarded_element(element: &str) -> Option<IpAddr> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        name.trim().eq_ignore_ascii_case("for").then(|| read_address(bare)).flatten()
    })
}

#[cfg(test)]
mod tests;
