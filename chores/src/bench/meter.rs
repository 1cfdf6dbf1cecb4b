//! What processes cost: CPU time and memory, as the kernel counts them.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use super::load::Outcome;

/// The processes a hub consists of.
#[derive(Clone, Copy)]
pub struct Meter {
    pub hub: u32,
    /// PostgreSQL's first process; its children count too.
    pub database: Option<u32>,
}

/// CPU seconds used so far.
#[derive(Clone, Copy)]
pub struct Reading {
    pub hub: f64,
    pub database: f64,
    at: Instant,
}

/// CPU seconds used in between.
#[derive(Clone, Copy)]
pub struct Used {
    pub hub: f64,
    pub database: f64,
    pub seconds: f64,
}

impl Used {
    pub fn cpu(&self) -> f64 {
        self.hub + self.database
    }

    /// For each item of a load, in milliseconds.
    pub fn cpu_ms(&self, of: &Outcome) -> f64 {
        1000.0 * self.cpu() / of.items as f64
    }

    /// 100 is one core.
    pub fn percent(&self) -> f64 {
        100.0 * self.cpu() / self.seconds
    }
}

impl Meter {
    pub fn read(&self) -> Result<Reading> {
        let database = match self.database {
            None => 0.0,
            Some(first) => family(first)?.iter().map(|stat| stat.cpu).sum(),
        };
        let hub = stat(self.hub).context("the hub is gone")?.cpu;
        Ok(Reading {
            hub,
            database,
            at: Instant::now(),
        })
    }

    pub fn since(&self, before: Reading) -> Result<Used> {
        let now = self.read()?;
        Ok(Used {
            hub: now.hub - before.hub,
            database: now.database - before.database,
            seconds: now.at.duration_since(before.at).as_secs_f64(),
        })
    }

    /// The hub's resident memory in MB.
    pub fn rss_mb(&self) -> Result<f64> {
        self.memory_mb("VmRSS:")
    }

    /// The most it had at any moment since [`Meter::forget_peak`].
    pub fn peak_mb(&self) -> Result<f64> {
        self.memory_mb("VmHWM:")
    }

    /// The kernel keeps the peak; this makes it what is in use now.
    pub fn forget_peak(&self) -> Result<()> {
        let file = format!("/proc/{}/clear_refs", self.hub);
        fs::write(&file, "5").with_context(|| format!("cannot read the hub's peak of memory: {file}"))
    }

    fn memory_mb(&self, name: &str) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.hub))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kb: f64 = line
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .context("the kernel does not report the hub's memory")?;
        Ok(kb / 1000.0)
    }
}

struct Stat {
    parent: u32,
    cpu: f64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; what counts comes after it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    // User and system time, own and of children that have ended. The kernel counts in hundredths here.
    let cpu = (11..15).map(ticks).sum::<f64>() / 100.0;
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        cpu,
    })
}

fn family(first: u32) -> Result<Vec<Stat>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(stat) = stat(pid).filter(|stat| pid == first || stat.parent == first) {
            all.push(stat);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_is_seen_to_work() {
        let meter = Meter {
            hub: std::process::id(),
            database: None,
        };
        let before = meter.read().unwrap();
        let mut sum = 0_u64;
        let used = crate::wait::until(
            "CPU time to be counted",
            std::time::Duration::from_secs(30),
            || {
                (0..2_000_000_u64).for_each(|n| sum = std::hint::black_box(sum ^ n.wrapping_mul(n)));
                let used = meter.since(before)?;
                Ok((used.cpu() > 0.0).then_some(used))
            },
        );
        assert!(used.unwrap().percent() > 0.0);
        assert!(meter.rss_mb().unwrap() > 1.0);
    }

    #[test]
    fn the_peak_is_of_the_time_since_it_was_forgotten() {
        const BLOCK: usize = 64 << 20;
        let meter = Meter {
            hub: std::process::id(),
            database: None,
        };
        meter.forget_peak().unwrap();
        let before = meter.peak_mb().unwrap();
        drop(std::hint::black_box(vec![1_u8; BLOCK]));
        let peak = meter.peak_mb().unwrap();
        assert!(peak > before + 50.0, "{before} MB, then {peak} MB");
        meter.forget_peak().unwrap();
        assert!(meter.peak_mb().unwrap() < peak - 40.0);
    }
}
