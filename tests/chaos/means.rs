//! Finds out whether this machine, and our rights on it, allow a scenario. This is done before a run, so that every
//! later failure is a real one, and no reason to leave the scenario out.

use crate::brake::Brake;
use crate::disk_image::Disk;
use crate::lab::{self, Gear};
use crate::wall::WallClock;

/// Why a part of this gear is not available here, if one isn't.
pub fn missing(gear: Gear) -> Option<String> {
    let apart = gear.networks || gear.proxies || gear.wall_clocks;
    let apart =
        (apart && !lab::is_apart()).then(|| "this process can't have a network and mounts of its own".to_owned());
    apart
        .or_else(|| if gear.disks { Disk::make().err() } else { None })
        .or_else(|| if gear.brakes { Brake::make().err() } else { None })
        .or_else(|| if gear.wall_clocks { WallClock::library().err() } else { None })
}
