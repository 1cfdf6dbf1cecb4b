//! Boot menus for BIOS and UEFI.
//!
//! Both menus hold the kernel's arguments in an area of fixed size: the arguments, the end of the line, and `#` up to
//! the end. Whoever serves the image writes other arguments over it and nothing else moves.

use super::BuildError;
use crate::base::description::{KargsFile, KargsPlace, Role, hash, newline};
use crate::consoles;

pub const KERNEL: &str = "boot/vmlinuz";
pub const INITRD: &str = "boot/initrd.img";
/// Zeros for a configuration; in a system, the marked area the installer fills.
pub const CONFIG: &str = "muster/config.img";
pub const CONFIG_BYTES: u64 = 256 * 1024;
pub(super) const ISOLINUX: &str = "isolinux/isolinux.cfg";
pub(super) const GRUB: &str = "boot/grub/grub.cfg";

/// Screen and first serial port; a machine that cannot go on restarts. Slow virtual machines fail the timer check.
const ARGUMENTS: &str = "console=tty0 console=ttyS0,115200n8 no_timer_check panic=30";
/// Room for arguments of an InfraEnv, as much as CoreOS images leave.
const ROOM: usize = 1024;
/// More than this x86 kernels cut off.
const LARGEST: usize = 2048;

/// The texts of one image.
#[derive(Debug)]
pub(super) struct Menus {
    pub isolinux: String,
    pub grub: String,
    pub kargs: KargsFile,
}

impl Role {
    /// Loaders find their files by it, so a disk and a CD in one machine must differ.
    pub fn volume(self) -> &'static str {
        match self {
            Role::Discovery => "MUSTER-DISCOVERY",
            Role::System => "MUSTER-SYSTEM",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Role::Discovery => "Muster discovery",
            Role::System => "Muster system",
        }
    }

    /// The configuration of a system is read from its disk, not by the boot loader.
    fn initrds(self) -> &'static [&'static str] {
        match self {
            Role::Discovery => &[INITRD, CONFIG],
            Role::System => &[INITRD],
        }
    }

    fn argument(self) -> Option<&'static str> {
        match self {
            Role::Discovery => None,
            Role::System => Some("muster.system"),
        }
    }
}

pub(super) fn menus(role: Role, append: &str) -> Result<Menus, BuildError> {
    let own = consoles::without_overruled(ARGUMENTS, &[append.to_owned()]);
    let words = own
        .split(' ')
        .chain(role.argument())
        .chain(append.split_whitespace());
    let line = words.collect::<Vec<_>>().join(" ");
    if append.contains(['\n', '\r', '\0']) {
        return Err(BuildError::input("kernel arguments are one line"));
    }
    let size = (line.len() + 1 + ROOM).min(LARGEST);
    if line.len() + 1 > LARGEST {
        return Err(BuildError::input(format!(
            "the kernel takes {} bytes of arguments at most, and these are {}",
            LARGEST - 1,
            line.len()
        )));
    }
    let area = format!("{line}\n{}", "#".repeat(size - line.len() - 1));
    let (isolinux, isolinux_at) = isolinux(role, &area);
    let (grub, grub_at) = grub(role, &area);
    let place = |path: &str, offset: usize| KargsPlace {
        path: path.to_owned(),
        offset: offset as u64,
        pad: hash(),
        end: newline(),
    };
    Ok(Menus {
        isolinux,
        grub,
        kargs: KargsFile {
            default: line,
            size: size as u64,
            files: vec![place(ISOLINUX, isolinux_at), place(GRUB, grub_at)],
        },
    })
}

/// Boots at once; a key held down gives the prompt, which gives up after two seconds.
fn isolinux(role: Role, area: &str) -> (String, usize) {
    let initrds: Vec<String> = role.initrds().iter().map(|path| format!("/{path}")).collect();
    let head = format!(
        "serial 0 115200\ndefault muster\nprompt 0\ntimeout 20\nsay {title}\n\nlabel muster\n  kernel /{KERNEL}\n  \
         append initrd={initrds} ",
        title = role.title(),
        initrds = initrds.join(",")
    );
    (format!("{head}{area}\n"), head.len())
}

fn grub(role: Role, area: &str) -> (String, usize) {
    let initrds: Vec<String> = role.initrds().iter().map(|path| format!("/{path}")).collect();
    let head = format!(
        "set default=0\nset timeout=1\n\nmenuentry '{title}' {{\n  linux /{KERNEL} ",
        title = role.title()
    );
    let text = format!("{head}{area}\n  initrd {}\n}}\n", initrds.join(" "));
    (text, head.len())
}

/// Inside GRUB itself: finds the volume it belongs to, first on the device it was started from. Without one the firmware
/// goes on to what it would boot next.
pub(super) fn grub_start(role: Role) -> String {
    let volume = role.volume();
    format!(
        "if serial --unit=0 --speed=115200; then\n  terminal_input console serial\n  terminal_output console serial\nfi\n\
         regexp --set=1:disk '^\\(([^,)]+)' \"$cmdpath\"\n\
         if [ -n \"$disk\" ]; then\n  search --no-floppy --label {volume} --set=root --hint \"$disk\"\n\
         else\n  search --no-floppy --label {volume} --set=root\nfi\n\
         if [ -f \"($root)/{GRUB}\" ]; then\n  configfile \"($root)/{GRUB}\"\nfi\n\
         echo 'There is no volume {volume} here.'\nsleep 5\nexit\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_menus_hold_the_arguments_where_the_description_says() {
        for role in [Role::Discovery, Role::System] {
            let menus = menus(role, "quiet  a=b").unwrap();
            for (text, place) in [&menus.isolinux, &menus.grub].into_iter().zip(&menus.kargs.files) {
                let start = usize::try_from(place.offset).unwrap();
                let area = &text[start..start + usize::try_from(menus.kargs.size).unwrap()];
                let (line, rest) = area.split_once('\n').unwrap();
                assert_eq!(line, menus.kargs.default);
                assert!(rest.len() >= 1024 && rest.chars().all(|c| c == '#'), "{rest}");
                assert!(text[..start].ends_with(' ') && text[start + area.len()..].starts_with('\n'));
            }
            assert!(menus.kargs.default.ends_with("quiet a=b"));
            assert_eq!(
                menus.kargs.default.contains("muster.system"),
                role == Role::System
            );
            assert_eq!(menus.grub.contains(CONFIG), role == Role::Discovery);
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused() {
        assert!(menus(Role::Discovery, &"x".repeat(1900)).is_ok());
        assert!(menus(Role::Discovery, &"x".repeat(2100)).is_err());
        assert!(menus(Role::Discovery, "a\nb").is_err());
    }
}
