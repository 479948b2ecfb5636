//! Disk access: the only room that touches files, beside the catalog.
