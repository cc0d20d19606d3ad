use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpSocket;

use super::*;

/// A listener on a free port, and its address.
async fn listener(max: usize, per_address_max: usize, trusted: &str) -> (LimitedListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits { max, per_address_max, trusted_proxies: vec![trusted.parse().unwrap()] };
    (LimitedListener::new(listener, limits), address)
}

async fn call(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// The next connection and its address, or `None` if there is no place for one now.
async fn accept(listener: &LimitedListener) -> Option<(Connection, [u8; 4])> {
    // Every connection of the test is in the backlog already.
    let accepted = tokio::time::timeout(Duration::from_millis(200), listener.accept_stream()).await.ok()?;
    let (connection, RemoteAddress(remote)) = accepted.unwrap();
    let SocketAddr::V4(remote) = remote else { panic!("{remote}") };
    Some((connection, remote.ip().octets()))
}

#[tokio::test]
async fn when_all_places_are_taken_the_next_connection_waits_until_one_ends() {
    let (listener, address) = listener(2, 2, "10.0.0.0/8").await;
    let mut callers = Vec::new();
    for host in 1..=3 {
        callers.push(call([127, 0, 1, host], address).await);
    }
    let first = accept(&listener).await.unwrap();
    let second = accept(&listener).await.unwrap();
    assert_eq!((first.1, second.1), ([127, 0, 1, 1], [127, 0, 1, 2]));
    assert!(accept(&listener).await.is_none(), "two at a time");
    drop(first);
    assert_eq!(accept(&listener).await.unwrap().1, [127, 0, 1, 3]);
}

#[tokio::test]
async fn a_connection_over_its_address_limit_is_closed_unless_it_is_from_a_trusted_proxy() {
    let (listener, address) = listener(4, 1, "127.0.2.0/24").await;
    let mut callers = Vec::new();
    for host in [[127, 0, 1, 1], [127, 0, 1, 1], [127, 0, 2, 1], [127, 0, 2, 1], [127, 0, 1, 9]] {
        callers.push(call(host, address).await);
    }
    let mut accepted = Vec::new();
    while let Some(next) = accept(&listener).await {
        accepted.push(next);
    }
    let from: Vec<[u8; 4]> = accepted.iter().map(|(_, from)| *from).collect();
    assert_eq!(from, [[127, 0, 1, 1], [127, 0, 2, 1], [127, 0, 2, 1], [127, 0, 1, 9]]);
    let mut byte = [0];
    callers[1].readable().await.unwrap();
    assert_eq!(callers[1].try_read(&mut byte).unwrap(), 0, "closed");

    accepted.clear();
    callers.push(call([127, 0, 1, 1], address).await);
    assert_eq!(accept(&listener).await.unwrap().1, [127, 0, 1, 1], "a connection that has ended is not counted");
}
