//! One real node: its process, and what that process has for itself.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::brake::Brake;
use crate::disk_image::Disk;
use crate::network::Network;
use crate::wall::WallClock;

pub struct Node {
    pub name: String,
    pub address: Ipv4Addr,
    pub args: Vec<String>,
    pub data_dir: PathBuf,
    pub log: PathBuf,
    pub child: Option<Child>,
    pub network: Option<Network>,
    pub disk: Option<Disk>,
    pub brake: Option<Brake>,
    pub wall_clock: Option<WallClock>,
}

impl Node {
    pub fn start(&mut self) {
        assert!(self.child.is_none(), "{} is already running", self.name);
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = match &self.network {
            // `nsenter` executes the program in place of itself, so the process id is the node's.
            Some(network) => {
                let mut command = network.enter();
                command.arg(binary());
                command
            }
            None => Command::new(binary()),
        };
        command
            .args(["serve", "--name", &self.name])
            .args(["--listen", &format!("{}:7400", self.address)])
            .args(["--peer-listen", &format!("{}:7401", self.address)])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(["--campaigns-per-minute", "1000000", "--max-watches-per-client", "1000"])
            .args(&self.args)
            .env("NO_COLOR", "1")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        if let Some(clock) = &self.wall_clock {
            command.envs(clock.environment());
        }
        let child = command.spawn().unwrap();
        if let Some(brake) = &self.brake {
            brake.add(child.id());
        }
        self.child = Some(child);
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn signal(&mut self, signal: Signal) {
        let Some(child) = &self.child else { return };
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        // An error means that the process has ended by itself a moment ago.
        let _ = kill_process(pid, signal);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn binary() -> String {
    std::env::var("QUORATE_CHAOS_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_quorate").to_owned())
}
