//! What can't be had on this machine, or with our rights on it. It is asked for before anything is done: so whatever
//! fails later is broken, and no reason to leave a scenario out.

use crate::brake::Brake;
use crate::disk_image::Disk;
use crate::lab::{self, Gear};
use crate::wall::WallClock;

/// What of the gear can't be had here, if any of it can't.
pub fn missing(gear: Gear) -> Option<String> {
    let apart = gear.networks || gear.proxies || gear.wall_clocks;
    let apart = (apart && !lab::is_apart()).then(|| "no networks and mounts of our own".to_owned());
    apart
        .or_else(|| if gear.disks { Disk::make().err() } else { None })
        .or_else(|| if gear.brakes { Brake::make().err() } else { None })
        .or_else(|| if gear.wall_clocks { WallClock::library().err() } else { None })
}
