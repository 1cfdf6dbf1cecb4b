//! What people deploy: the chart, the plain manifests, the health checks, and the container images.

mod chart;
mod eviction;
mod guide;
mod health;
mod image;
mod plain;
mod reclaim;
mod rights;

use anyhow::{Context, Result};

pub fn run() -> Result<()> {
    health::run().context("the health checks of Argo CD")?;
    chart::run().context("the chart")
}

pub fn container() -> Result<()> {
    image::quick().context("the container image")
}

pub fn shipped_container() -> Result<()> {
    image::shipped().context("the container image")
}
