//! A file system in a file, whose power can be cut. This needs the right to mount.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A mounted file system. It is unmounted however the test ends.
pub struct Disk {
    image: PathBuf,
    pub mount: PathBuf,
    _temp: tempfile::TempDir,
}

impl Disk {
    pub fn make() -> Result<Disk, String> {
        let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (image, mount) = (temp.path().join("image"), temp.path().join("mount"));
        std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(64 << 20).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        let disk = Disk { image, mount, _temp: temp };
        disk.mount()?;
        Ok(disk)
    }

    pub fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.mount)).map(drop)
    }

    /// Unmounts the file system, and waits until the kernel has let go of it.
    ///
    /// For a moment a file can still be open: in a thread of sled that is about to end, or in a process of another test
    /// between its fork and its exec. A process with its own mount namespace can keep the whole mount alive. If it were
    /// mounted again before that ends, it would still be the file system whose power was cut.
    pub fn unmount(&self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match run(Command::new("umount").arg(&self.mount)) {
                Err(why) if why.contains("busy") && Instant::now() < deadline => {}
                Err(why) => return Err(why),
                Ok(_) => break,
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        while self.has_loop_device()? {
            if Instant::now() >= deadline {
                return Err("the image is still in use".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn has_loop_device(&self) -> Result<bool, String> {
        let listed = Command::new("losetup").arg("-j").arg(&self.image).output();
        Ok(!listed.map_err(|error| error.to_string())?.stdout.is_empty())
    }

    /// Drops everything that is not on the disk yet. From then on every write fails.
    pub fn cut_power(&self) {
        cut_power(&self.root());
    }

    /// The folder where the file system is mounted, opened.
    pub fn root(&self) -> File {
        File::open(&self.mount).unwrap()
    }

    /// The data directory of a node on this disk.
    pub fn data_dir(&self) -> PathBuf {
        self.mount.join("data")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // This fails if the test ended while the disk was not mounted, which is fine.
        let _ = self.unmount();
    }
}

/// Drops everything that the file system of this folder has not written to its disk.
pub fn cut_power(root: &File) {
    const GOING_DOWN: u32 = rustix::ioctl::opcode::read::<u32>(b'X', 125);
    const WITHOUT_FLUSHING_THE_JOURNAL: u32 = 2;
    // SAFETY: for this request the kernel reads a u32, and the argument is a u32.
    unsafe {
        let request = rustix::ioctl::Setter::<GOING_DOWN, u32>::new(WITHOUT_FLUSHING_THE_JOURNAL);
        rustix::ioctl::ioctl(root.as_fd(), request).unwrap();
    }
}

/// Runs a program to its end, and returns what it printed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
