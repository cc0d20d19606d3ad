//! Machines that break what the nodes rely on, to show that the checks notice it.

/// Something that is wrong with all machines. The checks must notice each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Disks that only pretend to flush the log.
    ForgetfulDisks,
    /// Clocks that run 1.5 times as fast as real time.
    FastClocks,
}

impl Defect {
    /// The defect with the name that `QUORATE_SIMULATION_DEFECT` takes.
    pub fn named(name: &str) -> Defect {
        match name {
            "forgetful-disks" => Defect::ForgetfulDisks,
            "fast-clocks" => Defect::FastClocks,
            _ => panic!("there is no defect {name}, only forgetful-disks and fast-clocks"),
        }
    }
}
