//! Machines that break what the promises rest on.

/// A machine that breaks what the promises rest on. Each must be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Disks that only pretend to flush the log.
    ForgetfulDisks,
    /// Clocks that run at one and a half times their speed.
    FastClocks,
}

impl Defect {
    pub fn named(name: &str) -> Defect {
        match name {
            "forgetful-disks" => Defect::ForgetfulDisks,
            "fast-clocks" => Defect::FastClocks,
            _ => panic!("no defect {name}"),
        }
    }
}
