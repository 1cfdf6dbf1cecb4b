//! What people deploy: the chart and the health checks; apart from them the container image, whose static program takes
//! long to compile.

mod chart;
mod health;
mod image;

use anyhow::{Context, Result};

pub fn run() -> Result<()> {
    health::run().context("the health checks of Argo CD")?;
    chart::run().context("the chart")
}

pub fn container() -> Result<()> {
    image::run().context("the container image")
}
