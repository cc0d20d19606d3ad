//! A network between the nodes that can be made bad. Each node is known to the others by the address of a proxy. The
//! proxy passes bytes on, late or in small pieces, or keeps them back, or drops them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// What happens to the bytes that one node sends to another, whichever of the two opened the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weather {
    pub delay: Duration,
    /// The most that is added to the delay, at random for each piece. Order is kept.
    pub jitter: Duration,
    /// Bytes wait, and arrive later.
    pub stalled: bool,
    /// Bytes are lost. Their connection stays open, and passes nothing any more, even in better weather.
    pub swallowed: bool,
    pub bytes_per_second: Option<usize>,
}

type Links = [[Weather; 3]; 3];

pub struct Proxies {
    links: watch::Sender<Links>,
    struck: Arc<AtomicU64>,
    /// The listeners end when this is dropped.
    _listeners: tokio::task::JoinSet<()>,
}

/// One direction of a connection.
struct Way {
    from: usize,
    to: usize,
    links: watch::Receiver<Links>,
    struck: Arc<AtomicU64>,
    /// Whether the connection has lost bytes in either direction, and so passes nothing any more.
    is_useless: Arc<AtomicBool>,
}

/// The size of a piece, and how many pieces may wait: together more than the nodes send in a second.
const PIECE_BYTES: usize = 16 << 10;
const PIECES_MAX: usize = 256;
/// Into how many pieces a second the bytes are cut if bandwidth is limited.
const PIECES_PER_SECOND: usize = 20;

impl Proxies {
    /// Listens at each of the addresses `fronts`, and connects to the node with the same index.
    pub async fn start(fronts: [SocketAddr; 3], nodes: [SocketAddr; 3]) -> Result<Proxies, String> {
        let (links, weather) = watch::channel(Links::default());
        let struck = Arc::new(AtomicU64::new(0));
        let mut listeners = tokio::task::JoinSet::new();
        for (to, front) in fronts.into_iter().enumerate() {
            let listener = TcpListener::bind(front).await.map_err(|error| format!("{front}: {error}"))?;
            listeners.spawn(listen(listener, nodes, to, weather.clone(), struck.clone()));
        }
        Ok(Proxies { links, struck, _listeners: listeners })
    }

    /// Sets the weather from now on for these pairs of sender and receiver.
    pub fn set(&self, ways: &[(usize, usize)], weather: Weather) {
        self.links.send_modify(|links| ways.iter().for_each(|(from, to)| links[*from][*to] = weather));
    }

    /// Makes all links good again.
    pub fn clear(&self) {
        self.links.send_replace(Links::default());
    }

    /// How many pieces came in bad weather so far.
    pub fn struck(&self) -> u64 {
        self.struck.load(Ordering::SeqCst)
    }
}

async fn listen(
    listener: TcpListener,
    nodes: [SocketAddr; 3],
    to: usize,
    links: watch::Receiver<Links>,
    struck: Arc<AtomicU64>,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((near, sender)) = listener.accept().await else { continue };
        let from = nodes.iter().position(|node| node.ip() == sender.ip()).expect("only nodes connect to a proxy");
        let is_useless = Arc::new(AtomicBool::new(false));
        let way = |from, to| {
            let (links, struck, is_useless) = (links.clone(), struck.clone(), is_useless.clone());
            Way { from, to, links, struck, is_useless }
        };
        let (there, back) = (way(from, to), way(to, from));
        connections.spawn(async move {
            // If the node is down, the proxy closes the connection.
            let Ok(far) = TcpStream::connect(nodes[to]).await else { return };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
            tokio::join!(there.pass(near_reads, far_writes), back.pass(far_reads, near_writes));
        });
        while connections.try_join_next().is_some() {}
    }
}

impl Way {
    async fn pass(self, reads: OwnedReadHalf, writes: OwnedWriteHalf) {
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        tokio::join!(self.take(reads, sender), self.give(writes, pieces));
    }

    fn weather(&self) -> Weather {
        self.links.borrow()[self.from][self.to]
    }

    /// Reads pieces, and queues each with the moment at which it is due.
    async fn take(&self, mut reads: OwnedReadHalf, pieces: mpsc::Sender<(Instant, Vec<u8>)>) {
        let mut last_due = Instant::now();
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(read @ 1..) = reads.read(&mut buffer).await {
            let weather = self.weather();
            if weather != Weather::default() {
                self.struck.fetch_add(1, Ordering::SeqCst);
            }
            if weather.swallowed {
                self.is_useless.store(true, Ordering::SeqCst);
            }
            let late = weather.delay + weather.jitter.mul_f64(rand::random::<f64>());
            last_due = last_due.max(Instant::now() + late);
            if pieces.send((last_due, buffer[..read].to_vec())).await.is_err() {
                break;
            }
        }
    }

    /// Writes each piece when it is due, as far as the weather lets it.
    async fn give(&self, mut writes: OwnedWriteHalf, mut pieces: mpsc::Receiver<(Instant, Vec<u8>)>) {
        let mut links = self.links.clone();
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            let mut rest = &piece[..];
            while !rest.is_empty() {
                if links.wait_for(|links| !links[self.from][self.to].stalled).await.is_err() {
                    return;
                }
                if self.is_useless.load(Ordering::SeqCst) {
                    break;
                }
                let rate = self.weather().bytes_per_second;
                let most = rate.map_or(rest.len(), |rate| (rate / PIECES_PER_SECOND).clamp(1, rest.len()));
                if writes.write_all(&rest[..most]).await.is_err() {
                    return;
                }
                rest = &rest[most..];
                if rate.is_some() {
                    sleep(Duration::from_secs(1) / PIECES_PER_SECOND as u32).await;
                }
            }
        }
        // On a useless connection even the end of the connection doesn't get through.
        if self.is_useless.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}
