//! Distance kernels, selection and quantisation over slices.
