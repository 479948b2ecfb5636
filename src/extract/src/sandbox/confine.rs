//! Confines a child before it reads a document: resource limits, seccomp, Landlock.

use std::io;

/// Memory limit of a child in bytes: a document that needs more is a decompression bomb.
pub const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// CPU time limit in seconds.
#[cfg(unix)]
const CPU_SECONDS: u64 = 20;

/// Confines the calling process permanently. It must be single-threaded.
///
/// # Errors
/// Errors of the kernel: a process that could not be confined must not read anything.
pub fn confine() -> io::Result<()> {
    #[cfg(unix)]
    limit()?;
    #[cfg(target_os = "linux")]
    linux::lock()?;
    Ok(())
}

#[cfg(unix)]
fn limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [
        // The program itself is mapped as well.
        (Resource::As, address_bytes()?.saturating_add(MEMORY_BYTES_MAX)),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, 16),
    ];
    for (resource, most) in limits {
        // macOS does not enforce address space limits.
        if cfg!(target_os = "macos") && resource == Resource::As {
            continue;
        }
        // The kernel signals the CPU limit with SIGXCPU. With equal soft and hard limits it would
        // send SIGKILL, as it does when out of memory.
        let maximum = most + u64::from(resource == Resource::Cpu);
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(maximum) })?;
    }
    Ok(())
}

/// Current address space of the process in bytes; 0 if the system does not report it.
#[cfg(unix)]
fn address_bytes() -> io::Result<u64> {
    if !cfg!(target_os = "linux") {
        return Ok(0);
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let kib = kib.ok_or_else(|| io::Error::other("/proc/self/status does not tell VmSize"))?;
    Ok(kib << 10)
}

/// Whether Landlock can confine children of this process: the kernel supports it and no seccomp
/// filter forbids it. Changes nothing.
pub fn has_landlock() -> bool {
    #[cfg(target_os = "linux")]
    return linux::has_landlock();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[cfg(target_os = "linux")]
pub(super) mod linux {
    use std::collections::BTreeMap;
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter,
    };

    /// Allowed system calls: memory, pipes and exit. All others, above all opening files and
    /// sockets, fail with EPERM, as does a signal to another process.
    const CALLS: [libc::c_long; 31] = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_rseq,
        libc::SYS_membarrier,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub(super) fn has_landlock() -> bool {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules.handle_access(AccessFs::Execute).and_then(Ruleset::create).is_ok()
    }

    /// Installs the seccomp filter and, if the kernel supports Landlock, denies all paths and
    /// ports, in case the call list is wrong.
    pub fn lock() -> io::Result<()> {
        let landlock = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V5))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
            .and_then(Ruleset::create)
            .and_then(|rules| rules.restrict_self());
        landlock.map_err(io::Error::other)?;
        let architecture =
            TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let filter = SeccompFilter::new(
            rules(std::process::id()).map_err(io::Error::other)?,
            SeccompAction::Errno(libc::EPERM as u32),
            SeccompAction::Allow,
            architecture,
        );
        let filter = filter.map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    }

    /// The seccomp rules: the calls above, and signals to this process.
    pub(crate) fn rules(
        own: u32,
    ) -> Result<BTreeMap<libc::c_long, Vec<SeccompRule>>, seccompiler::BackendError> {
        let mut rules: BTreeMap<_, _> = CALLS.map(|call| (call, Vec::new())).into();
        let to = |process| {
            let is = SeccompCmpOp::Eq;
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, is, u64::from(process))
        };
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![to(own)?])?]);
        Ok(rules)
    }
}
