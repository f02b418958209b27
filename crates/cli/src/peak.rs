//! The most memory a process has used.

/// Peak resident set size of this process in bytes; `None` where there is no `/proc`.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    read("self")
}

/// The same of another process, as long as it runs.
pub(crate) fn peak_rss_bytes_of(pid: u32) -> Option<u64> {
    read(&pid.to_string())
}

fn read(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
