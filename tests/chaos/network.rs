//! A network namespace for a node, with a cable that connects it to the bridge.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::disk_image::run;

/// A network namespace. It lives as long as its keeper.
pub struct Network {
    /// A process that only keeps the namespace alive.
    pub keeper: Child,
    /// The name of the cable's end inside.
    pub end: String,
    pub hardware_address: String,
}

impl Network {
    pub fn make(name: &str, address: Ipv4Addr) -> Result<Network, String> {
        let mut keep = Command::new("unshare");
        keep.args(["--net", "sleep", "infinity"]).stdin(Stdio::null());
        let keeper = keep.spawn().map_err(|error| error.to_string())?;
        let (here, end) = (format!("to-{name}"), format!("eth-{name}"));
        let mut network = Network { keeper, end: end.clone(), hardware_address: String::new() };
        network.wait_until_apart()?;
        // The network of an earlier lab may still be there for a moment, with its cable.
        let _ = ip(&format!("link del {here}"));
        ip(&format!("link add {here} type veth peer name {end}"))?;
        ip(&format!("link set {end} netns {}", network.keeper.id()))?;
        ip(&format!("link set {here} master chaos0 up"))?;
        network.ip("link set lo up")?;
        network.ip(&format!("addr add {address}/24 dev {end}"))?;
        network.ip(&format!("link set {end} up"))?;
        let shown = network.ip(&format!("-o link show {end}"))?;
        let after = shown.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
        after.ok_or("no hardware address")?.clone_into(&mut network.hardware_address);
        Ok(network)
    }

    /// Waits until the keeper is in a network of its own.
    fn wait_until_apart(&self) -> Result<(), String> {
        let ours = std::fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
        for _ in 0..500 {
            let theirs = std::fs::read_link(format!("/proc/{}/ns/net", self.keeper.id()));
            if theirs.is_ok_and(|theirs| theirs != ours) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("a node got no network of its own within 5 s".to_owned())
    }

    /// A command that runs its arguments in this network.
    pub fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.keeper.id())).arg("--");
        command
    }

    pub fn ip(&self, args: &str) -> Result<String, String> {
        run(self.enter().arg("ip").args(args.split(' ')))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Runs `ip` in the network of this process.
pub fn ip(args: &str) -> Result<String, String> {
    run(Command::new("ip").args(args.split(' ')))
}
