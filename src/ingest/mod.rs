//! Corridor 1: from accepted bytes to visible rows.
