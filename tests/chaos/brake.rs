//! Makes a disk slow: the kernel holds back the writes of one control group (cgroup v1) to one block device. What the
//! file system's own threads write is not held back, but a flush waits for its process's writes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk_image::Disk;

const GROUPS: &str = "/sys/fs/cgroup/blkio";

/// A control group for one process. Without a rule, or without a process, it does nothing.
pub struct Brake {
    group: PathBuf,
}

impl Brake {
    pub fn make() -> Result<Brake, String> {
        let group = Path::new(GROUPS).join(format!("quorate-chaos-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&group).map_err(|error| format!("no control group (v1) {}: {error}", group.display()))?;
        let brake = Brake { group };
        match brake.group.join("blkio.throttle.write_bps_device").exists() {
            true => Ok(brake),
            false => Err("this kernel holds no process's writes back".to_owned()),
        }
    }

    /// Takes a process and all of its threads in.
    pub fn hold(&self, process: u32) {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).unwrap();
    }

    /// From now on each block that its process writes takes so long, and they queue. No flush of something new writes
    /// less than a block.
    pub fn press(&self, disk: &Disk, block_takes_millis: u64) {
        let block_bytes = rustix::fs::statvfs(&disk.mount).unwrap().f_bsize;
        self.rule(disk, block_bytes * 1_000 / block_takes_millis);
    }

    /// What is held back is written at once.
    pub fn release(&self, disk: &Disk) {
        self.rule(disk, 0);
    }

    fn rule(&self, disk: &Disk, bytes_per_second: u64) {
        let rule = format!("{} {bytes_per_second}", device(disk));
        std::fs::write(self.group.join("blkio.throttle.write_bps_device"), rule).unwrap();
    }

    /// How many of its process's writes have come through to this disk.
    pub fn writes(&self, disk: &Disk) -> u64 {
        let served = std::fs::read_to_string(self.group.join("blkio.throttle.io_serviced")).unwrap();
        let line = format!("{} Write ", device(disk));
        served.lines().find_map(|served| served.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }
}

/// The numbers by which the kernel knows the block device of a mounted disk.
fn device(disk: &Disk) -> String {
    let device = disk.mount.metadata().unwrap().dev();
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

impl Drop for Brake {
    fn drop(&mut self) {
        // A process that has just ended is still in it for a moment. One that is left behind does nothing.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
