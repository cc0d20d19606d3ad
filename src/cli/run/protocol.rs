//! What `quorate run` and its guardian say to each other: a line of JSON each, over a pair of sockets.
//!
//! The sockets are also the proof of life: the end of a process closes its own, whatever ended it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::client::Deadline;

/// To the guardian.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The group must be gone by then.
    Deadline(Deadline),
    /// Pass a signal on.
    Signal(i32),
    /// End the group: politely first, and by force by the deadline at the latest.
    Stop,
}

/// From the guardian.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The command runs, or is about to be found out not to be one. Its process group has the same number.
    Started(i32),
    /// The group is told to end, since the deadline is near.
    OutOfTime,
    /// The command has ended: with a code, or by a signal.
    Ended {
        /// Its code, or 128 and the signal's number.
        exit_code: u8,
    },
    /// Nothing of the group is left.
    Gone,
}

/// One end.
pub struct Line {
    reader: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Line {
    /// Takes a socket over.
    pub fn new(socket: UnixStream) -> std::io::Result<Line> {
        socket.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(socket)?.into_split();
        Ok(Line { reader: BufReader::new(reader).lines(), writer })
    }

    /// Says something. If the other end has gone, reading will tell.
    pub async fn say(&mut self, message: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        let _ = self.writer.write_all(&line).await;
    }

    /// The next message; `None` once the other end has gone. It may be given up and called again.
    pub async fn hear<M: for<'de> Deserialize<'de>>(&mut self) -> Option<M> {
        let line = self.reader.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }
}

/// Gives the other end a file, with one byte beside it.
pub fn pass_file(socket: &UnixStream, file: BorrowedFd<'_>) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket.as_fd(), &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes the file that [`pass_file`] gave. The command doesn't inherit it by itself.
pub fn take_file(socket: &UnixStream) -> std::io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.next().and_then(|mut files| files.next()).ok_or_else(|| std::io::Error::other("no file came"))
}

#[cfg(test)]
mod tests;
