//! The signals that `quorate hold` and `quorate run` handle.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A listener for these signals.
pub struct Signals {
    /// TERM, INT, HUP and QUIT, which ask a process to end.
    ending: [(i32, Signal); 4],
    /// USR1 and USR2.
    others: [(i32, Signal); 2],
}

impl Signals {
    /// Starts to listen. From now on these signals don't end the process by themselves.
    pub fn listen() -> std::io::Result<Signals> {
        let listen = |kind: SignalKind| Ok::<_, std::io::Error>((kind.as_raw_value(), signal(kind)?));
        Ok(Signals {
            ending: [
                listen(SignalKind::terminate())?,
                listen(SignalKind::interrupt())?,
                listen(SignalKind::hangup())?,
                listen(SignalKind::quit())?,
            ],
            others: [listen(SignalKind::user_defined1())?, listen(SignalKind::user_defined2())?],
        })
    }

    /// The number of the next signal that asks for an end. Other signals stay pending for [`Signals::next`].
    pub async fn end(&mut self) -> u8 {
        let [(a, term), (b, int), (c, hup), (d, quit)] = &mut self.ending;
        let number = tokio::select! {
            _ = term.recv() => *a,
            _ = int.recv() => *b,
            _ = hup.recv() => *c,
            _ = quit.recv() => *d,
        };
        u8::try_from(number).unwrap_or(u8::MAX)
    }

    /// The number of the next signal, and whether it asks for an end.
    pub async fn next(&mut self) -> (i32, bool) {
        let [(a, term), (b, int), (c, hup), (d, quit)] = &mut self.ending;
        let [(e, usr1), (f, usr2)] = &mut self.others;
        tokio::select! {
            _ = term.recv() => (*a, true),
            _ = int.recv() => (*b, true),
            _ = hup.recv() => (*c, true),
            _ = quit.recv() => (*d, true),
            _ = usr1.recv() => (*e, false),
            _ = usr2.recv() => (*f, false),
        }
    }
}
