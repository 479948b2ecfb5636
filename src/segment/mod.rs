//! One immutable file of rows with everything about them.
