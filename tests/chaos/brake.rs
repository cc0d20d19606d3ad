//! Makes a disk slow. The kernel throttles the writes of one control group (cgroup v1) to one block device. It does not
//! throttle the file system's own threads, but a flush waits for the writes of its process.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk_image::Disk;

const GROUPS: &str = "/sys/fs/cgroup/blkio";

/// A control group for one process. It does nothing until it has a process and a rule.
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
            false => Err("this kernel cannot throttle the writes of a control group".to_owned()),
        }
    }

    /// Puts a process with all its threads into the group.
    pub fn add(&self, process: u32) {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).unwrap();
    }

    /// From now on each block that the process writes takes `block_takes_millis`, one after the other. A flush of new
    /// data writes one block or more.
    pub fn press(&self, disk: &Disk, block_takes_millis: u64) {
        let block_bytes = rustix::fs::statvfs(&disk.mount).unwrap().f_bsize;
        self.rule(disk, block_bytes * 1_000 / block_takes_millis);
    }

    /// Ends the throttling. Writes that wait are done at once.
    pub fn release(&self, disk: &Disk) {
        self.rule(disk, 0);
    }

    fn rule(&self, disk: &Disk, bytes_per_second: u64) {
        let rule = format!("{} {bytes_per_second}", device(disk));
        std::fs::write(self.group.join("blkio.throttle.write_bps_device"), rule).unwrap();
    }

    /// How many writes of the process have reached this disk.
    pub fn writes(&self, disk: &Disk) -> u64 {
        let served = std::fs::read_to_string(self.group.join("blkio.throttle.io_serviced")).unwrap();
        let line = format!("{} Write ", device(disk));
        served.lines().find_map(|served| served.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }
}

/// The block device of a mounted disk, as `major:minor`.
fn device(disk: &Disk) -> String {
    let device = disk.mount.metadata().unwrap().dev();
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

impl Drop for Brake {
    fn drop(&mut self) {
        // A process that has just ended stays in the group for a moment. A group that can't be removed does no harm.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
