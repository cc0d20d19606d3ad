//! The messages between `quorate run` and its guardian: one line of JSON each, over a pair of sockets.
//!
//! The sockets also show whether the other process lives: when a process ends, the kernel closes its socket.

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
    /// The group must be gone by this moment.
    Deadline(Deadline),
    /// Send this signal to the group.
    Signal(i32),
    /// End the group: TERM first, then KILL after a while, at the deadline at the latest.
    Stop,
}

/// From the guardian.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The process was started; whether the command can be executed is not known yet. The id of the process is also the
    /// id of its group.
    Started(i32),
    /// The group was told to end because the deadline is near.
    OutOfTime,
    /// The command has ended.
    Ended {
        /// Its exit code, or 128 plus the number of the signal that ended it.
        exit_code: u8,
    },
    /// No process of the group is left.
    Gone,
}

/// One end of the pair of sockets.
pub struct Channel {
    reader: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Channel {
    /// Takes over a socket.
    pub fn new(socket: UnixStream) -> std::io::Result<Channel> {
        socket.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(socket)?.into_split();
        Ok(Channel { reader: BufReader::new(reader).lines(), writer })
    }

    /// Sends a message. If the other process has ended, [`Channel::receive`] reports it.
    pub async fn send(&mut self, message: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        let _ = self.writer.write_all(&line).await;
    }

    /// The next message, or `None` once the other process has ended. If the future is dropped, no message is lost: the
    /// next call returns it.
    pub async fn receive<M: for<'de> Deserialize<'de>>(&mut self) -> Option<M> {
        let line = self.reader.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }
}

/// Passes a file to the other process. One byte goes with it, because an empty message can't carry a file.
pub fn pass_file(socket: &UnixStream, file: BorrowedFd<'_>) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket.as_fd(), &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes the file that [`pass_file`] has passed. It is closed on exec, so no other program inherits it by accident.
pub fn take_file(socket: &UnixStream) -> std::io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.next().and_then(|mut files| files.next()).ok_or_else(|| std::io::Error::other("the message has no file"))
}

#[cfg(test)]
mod tests;
