//! A file system in a file, whose power can be cut. Needs the right to mount.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A mounted file system of its own. It is unmounted however the test ends.
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

    /// A file can be held for a moment longer: by a thread of sled that is about to end, or by a process of
    /// another test between its fork and its exec. So can the whole mount, by a process with a mount namespace of
    /// its own; mounted again meanwhile it would still be the file system whose power was cut.
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

    /// Drops what isn't on the disk. From here on every write fails.
    pub fn cut_power(&self) {
        cut_power(&self.root());
    }

    /// The folder that it is mounted on.
    pub fn root(&self) -> File {
        File::open(&self.mount).unwrap()
    }

    /// Where on it a node keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        self.mount.join("data")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whether it is mounted at this moment depends on where the test ended.
        let _ = self.unmount();
    }
}

/// Drops what the file system of this folder has not written.
pub fn cut_power(root: &File) {
    const GOING_DOWN: u32 = rustix::ioctl::opcode::read::<u32>(b'X', 125);
    const WITHOUT_FLUSHING_THE_JOURNAL: u32 = 2;
    // SAFETY: the kernel reads a u32 for this request, and a u32 is what it is given.
    unsafe {
        let request = rustix::ioctl::Setter::<GOING_DOWN, u32>::new(WITHOUT_FLUSHING_THE_JOURNAL);
        rustix::ioctl::ioctl(root.as_fd(), request).unwrap();
    }
}

/// Runs a program to its end, and gives what it printed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
