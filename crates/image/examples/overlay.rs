//! Writes the images a base image and a configuration give, for looking at them with other tools:
//! `overlay BASE.iso CONFIG.ign FULL.iso MINIMAL.iso`.

use muster_image::base::{Base, import};
use muster_image::{Layout, Payload, overlay};
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, config, full, minimal] = arguments.as_slice() else {
        return Err("give a base image, a configuration, and two names to write to".into());
    };
    let file = Arc::new(File::open(base)?);
    let base = Base::open(Arc::clone(&file), import(&file)?)?;
    println!("{}", serde_json::to_string_pretty(&base.areas)?);
    let mut payload = Payload {
        ignition: std::fs::read(config)?.into(),
        ..Payload::default()
    };
    write(full, &overlay::full(&base, &payload)?)?;
    // More than the area of the builder's own minimal image, so that ours is written.
    payload.ramdisk = Some(vec![0; 300_000].into());
    write(
        minimal,
        &overlay::minimal(&base, &payload, "http://127.0.0.1/rootfs")?,
    )?;
    Ok(())
}

fn write(path: &str, layout: &Layout) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut at = 0;
    while at < layout.len() {
        let end = layout.len().min(at + (1 << 20));
        file.write_all(&layout.bytes(at..end)?)?;
        at = end;
    }
    Ok(())
}
