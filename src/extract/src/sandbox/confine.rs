//! Confinement of a child before it reads a document: limits, system calls, Landlock.

use std::io;

/// Bytes of address space: a document that needs more is a decompression bomb.
#[cfg(unix)]
const ADDRESS_BYTES: u64 = 512 << 20;
/// Seconds of CPU time.
#[cfg(unix)]
const CPU_SECONDS: u64 = 20;

/// Confines the calling process permanently. It must have one thread.
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
        (Resource::As, ADDRESS_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, 16),
    ];
    for (resource, most) in limits {
        // macOS does not enforce limits of address space.
        if cfg!(target_os = "macos") && resource == Resource::As {
            continue;
        }
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

    /// System calls for memory, pipes and exit. All others, opening files and sockets first of all,
    /// fail with EPERM.
    const CALLS: [libc::c_long; 32] = [
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
        libc::SYS_tgkill,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Allows the calls above only, and, where the kernel has Landlock, no path and no port even if
    /// that list were wrong.
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
            CALLS.map(|call| (call, Vec::new())).into(),
            SeccompAction::Errno(libc::EPERM as u32),
            SeccompAction::Allow,
            architecture,
        );
        let filter = filter.map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)
    }
}
