//! Selects the device for vectors and models, once at the start, as the settings ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::EngineError;
use crate::settings::{DeviceChoice, Settings};
use lodestone_compute::cuda::manager::ManagerLimits;
use lodestone_compute::cuda::modules::CodeCache;
use lodestone_compute::cuda::{CudaBackend, CudaLimits, CudaParts, DeviceError};
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_embed::{DeviceLimits, EmbedDevice};
use lodestone_io::Disk;
use lodestone_types::Clock;

/// Directory of compiled kernels below the data directory. It may be deleted at any time.
const CACHE_PATH: &str = "cache/kernels";

/// The device selected for vector search and the embedding model.
#[derive(Debug, Clone)]
pub struct TakenDevice {
    /// The vector kernels.
    pub backend: Arc<dyn ComputeBackend>,
    /// The GPU for the model, if one is used.
    pub embedding: Option<EmbedDevice>,
}

/// Selects the device of the settings: the GPU if it is required, or if it is present and allowed,
/// and the CPU otherwise. A log line says which was selected, and why the GPU was not.
///
/// # Errors
/// [`EngineError::NoDevice`] if the settings require a GPU and none can be used.
pub fn take_device(
    settings: &Settings,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
) -> Result<TakenDevice, EngineError> {
    let cpu: Arc<dyn ComputeBackend> = Arc::new(SimdBackend);
    if settings.device == DeviceChoice::Cpu {
        return Ok(TakenDevice { backend: cpu, embedding: None });
    }
    match open_cuda(settings, disk, clock, Arc::clone(&cpu)) {
        Ok(cuda) => {
            tracing::info!(
                device = cuda.device(),
                "the GPU is used for vector search and embedding"
            );
            let embedding =
                Some(EmbedDevice { manager: cuda.manager(), limits: DeviceLimits::default() });
            Ok(TakenDevice { backend: Arc::new(cuda), embedding })
        }
        Err(error) if settings.device == DeviceChoice::Cuda => {
            Err(EngineError::NoDevice { reason: error.to_string() })
        }
        Err(error) => {
            tracing::info!(reason = %error, "using the CPU only, no GPU");
            Ok(TakenDevice { backend: cpu, embedding: None })
        }
    }
}

/// Opens the GPU backend.
///
/// # Errors
/// The reason why no GPU can be used.
pub fn open_cuda(
    settings: &Settings,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
    cpu: Arc<dyn ComputeBackend>,
) -> Result<CudaBackend, DeviceError> {
    let cache = KernelFolder::new(settings.data_dir.join(CACHE_PATH), Arc::clone(disk));
    let budget_bytes = settings.gpu_memory_limit;
    let manager = ManagerLimits { budget_bytes, ..ManagerLimits::default() };
    let limits = CudaLimits { manager, ..CudaLimits::default() };
    let source = source(Arc::new(cache))?;
    CudaBackend::open(CudaParts::new(source, cpu, Arc::clone(clock)), limits)
}

#[cfg(feature = "cuda")]
fn source(
    cache: Arc<dyn CodeCache>,
) -> Result<Arc<dyn lodestone_compute::cuda::DeviceSource>, DeviceError> {
    Ok(Arc::new(lodestone_compute::cuda::driver::CudaSource::new(cache)))
}

#[cfg(not(feature = "cuda"))]
fn source(
    _: Arc<dyn CodeCache>,
) -> Result<Arc<dyn lodestone_compute::cuda::DeviceSource>, DeviceError> {
    let reason = "this build does not support NVIDIA GPUs".to_owned();
    Err(DeviceError::NoDevice { reason })
}

/// A directory that caches compiled kernels. Several processes may share it: files appear
/// atomically.
#[derive(Debug)]
struct KernelFolder {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    next: AtomicU64,
}

impl KernelFolder {
    fn new(folder: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self { folder, disk, next: AtomicU64::new(0) }
    }

    fn write_whole(&self, path: &Path, code: &[u8]) -> Result<(), lodestone_io::IoError> {
        self.disk.create_dir_all(&self.folder)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{}-{number}.tmp", std::process::id()));
        // Left unfinished by an earlier process with the same id.
        if self.disk.exists(&temporary)? {
            self.disk.remove(&temporary)?;
        }
        self.disk.write_new(&temporary, &mut |file| file.write_all(code))?;
        self.disk.rename(&temporary, path)
    }
}

impl CodeCache for KernelFolder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.disk.read(&self.folder.join(name)).ok()
    }

    fn write(&self, name: &str, code: &[u8]) {
        if let Err(error) = self.write_whole(&self.folder.join(name), code) {
            tracing::warn!(%error, "compiled kernels not cached: the next start compiles again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_io::RealDisk;
    use lodestone_types::SystemClock;

    #[test]
    fn kernels_are_kept_from_one_start_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data/cache/kernels");
        let cache = || KernelFolder::new(folder.clone(), Arc::new(RealDisk));
        assert_eq!(cache().read("scan-sm90.bin"), None);
        cache().write("scan-sm90.bin", b"first");
        cache().write("scan-sm90.bin", b"second");
        assert_eq!(cache().read("scan-sm90.bin"), Some(b"second".to_vec()));
        let names = RealDisk.list(&folder).unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        KernelFolder::new(PathBuf::from("/dev/null/x"), Arc::new(RealDisk)).write("a", b"b");
    }

    #[test]
    fn the_cpu_is_taken_when_told_and_whatever_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, clock) = (Arc::new(RealDisk) as Arc<dyn Disk>, Arc::new(SystemClock) as Arc<_>);
        let mut settings = Settings::new(dir.path().into(), "models".into());
        settings.device = DeviceChoice::Cpu;
        assert_eq!(take_device(&settings, &disk, &clock).unwrap().backend.name(), "simd");
        settings.device = DeviceChoice::Auto;
        assert!(take_device(&settings, &disk, &clock).is_ok());
        settings.device = DeviceChoice::Cuda;
        match take_device(&settings, &disk, &clock) {
            Ok(taken) => assert_eq!(taken.backend.name(), "cuda"),
            Err(error) => assert!(error.to_string().contains("no GPU can be used: "), "{error}"),
        }
    }
}
